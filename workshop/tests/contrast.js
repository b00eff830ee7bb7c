// The texts of a page's pictures whose contrast is below 4.5, and how many texts there are.
() => {
  const numbers = (colour) => (colour.match(/[\d.]+/g) || []).map(Number);
  const light = (colour) => {
    const [r, g, b] = numbers(colour).slice(0, 3).map((part) => {
      const share = part / 255;
      return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const page = getComputedStyle(document.body).backgroundColor;
  const faint = [];
  const texts = document.querySelectorAll("svg.map text, .plot svg text");
  for (const text of texts) {
    const ink = getComputedStyle(text).fill;
    // A badge's or a part's text lies on the rectangle beside it; a plot's on the page.
    const box = text.closest("svg.map") && text.parentElement.querySelector(":scope > rect");
    let ground = box ? getComputedStyle(box).fill : page;
    if (ground === "none") ground = page;
    const [more, less] = [light(ink), light(ground)].sort((a, b) => b - a);
    const ratio = (more + 0.05) / (less + 0.05);
    if (ratio < 4.5) faint.push(`${text.textContent}: ${ink} on ${ground}, ${ratio.toFixed(2)}`);
  }
  return { texts: texts.length, faint };
}
