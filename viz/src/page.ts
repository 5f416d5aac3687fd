// The frame around the sections: the head with the chapters, which number keys reach, and the switch for the theme.
import {h, type Child} from "./dom";
import {currentTheme, onThemeChange, toggleTheme} from "./palette";
import type {Report} from "./report";

export interface Chapter {
  question: string; // "Where does the time go?"
  short: string; // in the head: "Time"
  sections: HTMLElement[];
}

/** A section says its finding as its title. */
export function section(id: string, title: string, ...children: Child[]): HTMLElement {
  return h("section", {id, "aria-labelledby": `${id}-title`}, h("h3", {id: `${id}-title`}, title), ...children);
}

/** In the place of a chart that would be empty. */
export function nothing(id: string, why: string): HTMLElement {
  return h("p", {class: "nothing", "data-empty": id}, why);
}

export function page(report: Report, head: HTMLElement[], chapters: readonly Chapter[]): void {
  document.title = `${report.title} · Tandem`;
  const elements = chapters.map(({question, sections}, at) =>
    h(
      "section",
      {class: "chapter", id: `chapter-${at + 1}`, tabindex: -1, "aria-labelledby": `chapter-${at + 1}-title`},
      h("h2", {id: `chapter-${at + 1}-title`}, h("span", {class: "count"}, String(at + 1)), question),
      ...sections
    )
  );
  const links = chapters.map(({short}, at) =>
    h("a", {href: `#chapter-${at + 1}`, "aria-keyshortcuts": String(at + 1)}, h("kbd", {}, String(at + 1)), short)
  );
  const main = h("main", {id: "main", tabindex: -1}, ...head, ...elements);
  document.body.append(
    h("a", {class: "skip", href: "#main"}, "Skip to the report"),
    h(
      "header",
      {class: "bar"},
      h(
        "div",
        {class: "inside"},
        h("span", {class: "brand"}, "Tandem"),
        h("h1", {class: "name", title: report.title}, report.title),
        h("nav", {"aria-label": "Chapters"}, ...links),
        themeButton()
      )
    ),
    main,
    h("footer", {}, h("code", {}, report.command), h("span", {}, `Tandem ${report.tandem}`))
  );
  followKeys(elements);
  followScrolling(elements, links);
}

export function themeButton(): HTMLElement {
  const button = h("button", {type: "button", class: "theme", "aria-keyshortcuts": "t"});
  const say = () => {
    const other = currentTheme() === "light" ? "dark" : "light";
    button.textContent = other === "dark" ? "Dark" : "Light";
    button.title = `Switch to the ${other} theme (t)`;
  };
  button.addEventListener("click", toggleTheme);
  onThemeChange(say);
  say();
  return button;
}

export function followKeys(chapters: readonly HTMLElement[]): void {
  document.addEventListener("keydown", event => {
    const typing = event.target instanceof Element && event.target.matches("input, select, textarea");
    if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "t") toggleTheme();
    const chapter = chapters[Number(event.key) - 1];
    if (!chapter) return;
    chapter.scrollIntoView();
    chapter.focus({preventScroll: true});
  });
}

/** Marks the chapter that is being read. */
export function followScrolling(chapters: readonly HTMLElement[], links: readonly HTMLElement[]): void {
  const mark = () => {
    const reached =
      window.scrollY === 0
        ? 1
        : chapters.filter(chapter => chapter.getBoundingClientRect().top < window.innerHeight * 0.35).length;
    links.forEach((link, at) => {
      if (at === reached - 1) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    });
  };
  document.addEventListener("scroll", mark, {passive: true});
  mark();
}
