// Sorts a profile's lines by a column, and opens an access when it is clicked in the source or in a finding. Without this
// script the lines stay in source order, and each access opens on its own.
function metalnbProfile(name) {
  document.querySelectorAll(`#${name}:not([data-ready])`).forEach(metalnbProfileCard);
}

function metalnbProfileCard(root) {
  const table = root.querySelector("table");
  root.dataset.ready = "1";
  const rows = [...table.tBodies]; // one per line: its figures, then its accesses
  const heads = [...root.querySelectorAll("th")];
  const value = (row, i) => Number(row.rows[0].cells[i].dataset.v || 0);

  function sort(i) {
    const inOrder = i === 0 || heads[i].hasAttribute("aria-sort");
    heads.forEach((head) => head.removeAttribute("aria-sort"));
    if (!inOrder) heads[i].setAttribute("aria-sort", "descending");
    root.classList.toggle("mp-sorted", !inOrder);
    const sorted = inOrder ? rows : [...rows].sort((a, b) => value(b, i) - value(a, i));
    table.append(...sorted);
  }
  heads.slice(0, -1).forEach((head, i) => { // all columns except the source
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    button.addEventListener("click", () => sort(i));
    head.replaceChildren(button);
  });

  function pressed(element, act) {
    element.addEventListener("click", act);
    element.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      event.stopPropagation();
      act();
    });
  }
  const details = (number) => root.querySelector(`details[data-a="${number}"]`);
  root.querySelectorAll(".mp-at").forEach((at) => {
    const picture = details(at.dataset.a);
    if (!picture) return;
    at.setAttribute("aria-expanded", "false");
    picture.addEventListener("toggle", () => at.setAttribute("aria-expanded", String(picture.open)));
    pressed(at, () => (picture.open = !picture.open));
  });
  root.querySelectorAll(".mp-finding a").forEach((link) =>
    pressed(link, () => {
      const row = rows.find((candidate) => candidate.dataset.line === link.dataset.line);
      if (!row) return;
      const picture = details(link.dataset.a);
      if (picture) picture.open = true;
      row.scrollIntoView({ block: "nearest" });
    }),
  );
}
