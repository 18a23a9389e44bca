// What both pages share: elements made from text (never from markup), requests, the theme.
"use strict";

export const $ = (id) => document.getElementById(id);

export function make(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === "text") element.textContent = value;
    else if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (value !== null && value !== false) element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null));
  return element;
}

export async function ask(path, body) {
  const options = body === undefined ? {} : {
    method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body),
  };
  let response;
  try {
    response = await fetch(path, options);
  } catch {
    throw new Error("The server does not answer. Is it still running?");
  }
  const answer = await response.json().catch(() => ({}));
  if (!response.ok) {
    throw new Error(typeof answer.detail === "string" ? answer.detail : `The server refused this (${response.status}).`);
  }
  return answer;
}

export const picture = (id, side) => `/api/pictures?id=${encodeURIComponent(id)}&side=${side}`;

export function say(sentence) {
  const notice = $("notice");
  notice.textContent = sentence || "";
  notice.hidden = !sentence;
}

export function themes() {
  const root = document.documentElement;
  const kept = localStorage.getItem("mispair-theme");
  if (kept) root.dataset.theme = kept;
  $("theme").addEventListener("click", () => {
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    localStorage.setItem("mispair-theme", root.dataset.theme);
  });
}

// The token came in the address and is in a cookie by now: it should not stay in the history.
export function withoutToken() {
  const asked = new URLSearchParams(location.search);
  if (!asked.has("token")) return;
  asked.delete("token");
  history.replaceState(null, "", `${location.pathname}${asked.size ? `?${asked}` : ""}`);
}

export const typing = (event) => event.target.closest("input, textarea, select") !== null;
