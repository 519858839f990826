// What is wrong with the page as it is shown now, in words: sizes, contrast (WCAG 2.2, 1.4.3), structure.
(() => {
  const wrong = [];
  const root = document.documentElement;
  const shown = (e) => e.getClientRects().length > 0 && getComputedStyle(e).visibility !== "hidden";
  const name = (e) => e.tagName.toLowerCase() + (e.id ? "#" + e.id : "") + " " + (e.textContent || e.value || "").trim().slice(0, 30);

  if (root.scrollWidth > root.clientWidth) wrong.push(`${root.scrollWidth} px wide in a window of ${root.clientWidth}`);
  if (!root.lang) wrong.push("no language");
  if (!document.title.trim()) wrong.push("no title");
  if (!getComputedStyle(root).colorScheme.includes("dark")) wrong.push("no dark color-scheme");
  for (const what of ["h1", "main"]) {
    const n = document.querySelectorAll(what).length;
    if (n !== 1) wrong.push(`${n} × ${what}`);
  }
  if (document.querySelector("script, [style], [onclick], [onload]")) wrong.push("script or style inside the page");
  const ids = [...document.querySelectorAll("[id]")].map((e) => e.id);
  if (new Set(ids).size !== ids.length) wrong.push("an id stands twice");
  for (const e of document.querySelectorAll("[aria-describedby], [aria-labelledby], label[for]"))
    for (const of of ["aria-describedby", "aria-labelledby", "for"])
      for (const id of (e.getAttribute(of) || "").split(" ").filter(Boolean))
        if (!document.getElementById(id)) wrong.push(`${name(e)}: nothing has the id ${id}`);

  for (const e of document.querySelectorAll("button, .button, input:not([type=hidden]):not([type=checkbox]), select, textarea, label.check"))
    if (shown(e) && e.getBoundingClientRect().height < 44) wrong.push(`${name(e)}: ${e.getBoundingClientRect().height} px tall`);

  for (const e of document.querySelectorAll("[aria-invalid]:not([type=checkbox])"))
    if (parseFloat(getComputedStyle(e).borderTopWidth) < 2) wrong.push(`${name(e)}: does not show that it is wrong`);

  const parse = (text) => {
    const n = text.match(/[\d.]+/g).map(Number);
    return text.startsWith("color(") ? [n[0] * 255, n[1] * 255, n[2] * 255, n[3] ?? 1] : [n[0], n[1], n[2], n[3] ?? 1];
  };
  const over = (top, below) => [0, 1, 2].map((i) => top[i] * top[3] + below[i] * (1 - top[3])).concat(1);
  const behind = (e) => {
    const layers = [];
    for (; e; e = e.parentElement) {
      const c = parse(getComputedStyle(e).backgroundColor);
      layers.push(c);
      if (c[3] === 1) break;
    }
    return layers.reverse().reduce((below, top) => over(top, below), matchMedia("(prefers-color-scheme: dark)").matches ? [18, 18, 18, 1] : [255, 255, 255, 1]);
  };
  const light = (c) => {
    const [r, g, b] = c.slice(0, 3).map((v) => ((v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrast = (a, b) => {
    const [x, y] = [light(a), light(b)].sort((p, q) => q - p);
    return (x + 0.05) / (y + 0.05);
  };
  const compare = (e, color, ground, least, what) => {
    const c = contrast(over(parse(color), ground), ground);
    if (c < least) wrong.push(`${name(e)}: ${what} has a contrast of ${c.toFixed(2)}`);
  };
  let texts = 0;
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const e = walk.currentNode.parentElement;
    if (!walk.currentNode.data.trim() || !shown(e) || e.tagName === "OPTION") continue;
    texts++;
    compare(e, getComputedStyle(e).color, behind(e), 4.5, "text");
  }
  if (texts < 2) wrong.push("hardly any text");
  for (const e of document.querySelectorAll("input:not([type=hidden]), select, textarea, button")) {
    if (!shown(e)) continue;
    compare(e, getComputedStyle(e).color, behind(e), 4.5, "text");
    if (e.type !== "checkbox") compare(e, getComputedStyle(e).borderTopColor, behind(e.parentElement), 3, "border");
  }
  return wrong;
})();
