// Copy buttons, and a stop for the tab key on what scrolls. All else works without scripts.
"use strict";

// A console block gives its commands: no prompt, no output.
function textOf(block, pre) {
  const text = pre.textContent;
  if (!block.classList.contains("highlight-console")) return text;
  return text.split("\n").filter((row) => row.startsWith("$ ")).map((row) => row.slice(2)).join("\n");
}

async function copy(text) {
  if (navigator.clipboard && window.isSecureContext) return navigator.clipboard.writeText(text);
  const area = document.createElement("textarea");
  area.value = text;
  area.style.position = "fixed";
  document.body.append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
}

function addButton(block) {
  const pre = block.querySelector("pre");
  const text = textOf(block, pre);
  if (!text) return;
  const what = block.classList.contains("highlight-console") ? "Copy command" : "Copy";
  const button = document.createElement("button");
  button.className = "copy";
  button.type = "button";
  button.textContent = "copy";
  button.setAttribute("aria-label", what);
  button.addEventListener("click", async () => {
    await copy(text);
    button.textContent = "copied";
    setTimeout(() => (button.textContent = "copy"), 1500);
  });
  block.append(button);
}

// What scrolls sideways must be reachable with the keyboard.
function markScrolling() {
  for (const one of document.querySelectorAll("pre, .table-wrapper")) {
    if (one.scrollWidth > one.clientWidth + 1) one.tabIndex = 0;
    else one.removeAttribute("tabindex");
  }
}

document.querySelectorAll("div[class*=highlight-]").forEach(addButton);
markScrolling();
window.addEventListener("resize", markScrolling);
document.addEventListener("toggle", markScrolling, true);

// A link to something that is folded away opens it.
function openTarget() {
  let one = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  for (; one; one = one.parentElement) if (one.tagName === "DETAILS") one.open = true;
}
openTarget();
window.addEventListener("hashchange", openTarget);
