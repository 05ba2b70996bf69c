"use strict";
for (const button of document.querySelectorAll("button[data-copy]")) {
  button.hidden = false;
  button.addEventListener("click", async () => {
    const text = button.parentElement.querySelector("pre").textContent;
    const said = document.getElementById("said");
    try {
      await navigator.clipboard.writeText(text);
      said.textContent = button.dataset.done;
    } catch {
      const range = document.createRange();
      range.selectNodeContents(button.parentElement.querySelector("pre"));
      const chosen = window.getSelection();
      chosen.removeAllRanges();
      chosen.addRange(range);
      said.textContent = button.dataset.marked;
    }
    const before = button.textContent;
    button.textContent = said.textContent;
    setTimeout(() => { button.textContent = before; }, 1500);
  });
}
