set positional-arguments

export TINY_ROOT := justfile_directory()
export TINY_JUST := just_executable()

[no-cd]
[private]
default:
    @"$TINY_JUST" --justfile "$TINY_ROOT/justfile" --list --unsorted

# Make the environment, .env and the tags; every other recipe does it when it is missing
[no-cd]
[no-exit-message]
setup *args:
    @sh "$TINY_ROOT/workshop/start" setup "$@"

# Ask the agent of the tree you stand in: just run "…"
[no-cd]
[no-exit-message]
run *request:
    @sh "$TINY_ROOT/workshop/start" run "$@"

# Show chapters and stages
[no-cd]
[no-exit-message]
list *args:
    @sh "$TINY_ROOT/workshop/start" list "$@"

# Lay out a stage's exact tree in .stages/: just stage 6
[no-cd]
[no-exit-message]
stage *args:
    @sh "$TINY_ROOT/workshop/start" stage "$@"

# Run any command in this tree's environment: just with python -m agent --help
[no-cd]
[no-exit-message]
with *command:
    @sh "$TINY_ROOT/workshop/start" with "$@"

# Show what a stage changed: just diff 6, just diff 3 6, just diff 6 agent/
[no-cd]
[no-exit-message]
diff *args:
    @sh "$TINY_ROOT/workshop/start" diff "$@"

# Begin to rebuild a stage, in work/: just start 6
[no-cd]
[no-exit-message]
start *args:
    @sh "$TINY_ROOT/workshop/start" start "$@"

# Check your stage against the tests of it and all earlier ones: just check 6
[no-cd]
[no-exit-message]
check *args:
    @sh "$TINY_ROOT/workshop/start" check "$@"

# Run the lesson's command on your code, beside what the lesson shows: just prove 6
[no-cd]
[no-exit-message]
prove *args:
    @sh "$TINY_ROOT/workshop/start" prove "$@"

# Get the next hint: just hint 6
[no-cd]
[no-exit-message]
hint *args:
    @sh "$TINY_ROOT/workshop/start" hint "$@"

# Show our change of a stage, beside yours: just solution 6
[no-cd]
[no-exit-message]
solution *args:
    @sh "$TINY_ROOT/workshop/start" solution "$@"

# Remove the trees in .stages/ that hold nothing of yours
[no-cd]
[no-exit-message]
clean-stages *args:
    @sh "$TINY_ROOT/workshop/start" clean-stages "$@"

# Build the site and serve it on this machine; --check looks at every link
[no-cd]
[no-exit-message]
docs *args:
    @sh "$TINY_ROOT/workshop/start" docs "$@"

# Run the practice endpoint in the foreground
[no-cd]
[no-exit-message]
practice *args:
    @sh "$TINY_ROOT/workshop/start" practice "$@"

# Run everything that CI runs
[no-cd]
[no-exit-message]
test *args:
    @sh "$TINY_ROOT/workshop/start" test "$@"

# Measure speed, as ratios
[no-cd]
[no-exit-message]
bench *args:
    @sh "$TINY_ROOT/workshop/start" bench "$@"

# Maintainers: open a stage for a change: just edit 5
[no-cd]
[no-exit-message]
edit *args:
    @sh "$TINY_ROOT/workshop/start" edit "$@"

# Maintainers: carry the change through all later stages and write it back
[no-cd]
[no-exit-message]
save *args:
    @sh "$TINY_ROOT/workshop/start" save "$@"

# Maintainers: push the stages' tags and the branch `line`: just publish origin
[no-cd]
[no-exit-message]
publish *args:
    @sh "$TINY_ROOT/workshop/start" publish "$@"
