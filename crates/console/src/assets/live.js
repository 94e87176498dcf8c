// Keeps a page as it is on the server. A page marks its changing parts with `data-part`; when the server says that
// something has changed, the page is asked for again and the parts that differ are put in. Nothing is drawn here.
'use strict';

const main = document.getElementById('main');
const status = document.getElementById('pulse');
const known = new Map();
let isAsking = false;
let askAgain = false;

const parts = (root) => root.querySelectorAll('[data-part]');
for (const part of parts(main)) known.set(part.dataset.part, part.outerHTML);

// A part in which somebody types, chooses, or has typed something is left alone.
const isInUse = (part) =>
  (part.contains(document.activeElement) && document.activeElement.matches('input, textarea, select')) ||
  [...part.querySelectorAll('input, textarea')].some((field) => field.value !== field.defaultValue);

// Who walks by keyboard stays where they were, if that is still there: the same link, or the same button of the same form.
const REACHED = 'a, button, summary, [tabindex]';
function keepingPlace(change) {
  const old = document.activeElement;
  const isHere = main.contains(old) && old.matches(REACHED);
  change();
  if (!isHere || old.isConnected) return;
  const sends = (one) => one.form && one.form.action + new URLSearchParams(new FormData(one.form));
  const means = (one) => [one.tagName, one.getAttribute('href') ?? one.textContent, sends(one)].join();
  const meant = means(old);
  [...main.querySelectorAll(REACHED)].find((one) => means(one) === meant)?.focus({ preventScroll: true });
}

async function refresh() {
  if (isAsking) { askAgain = true; return; }
  if (document.hidden) return;
  isAsking = true;
  try {
    const answer = await fetch(location.href, { headers: { Accept: 'text/html' }, cache: 'no-store' });
    if (answer.redirected || !answer.ok) throw new Error(answer.redirected ? 'signed out' : answer.status);
    const page = new DOMParser().parseFromString(await answer.text(), 'text/html');
    keepingPlace(() => put(page.getElementById('main')));
    putMenu(page.querySelector(MENU));
    say('');
  } catch (error) {
    say(`not up to date: ${error.message}`);
  }
  isAsking = false;
  if (askAgain) { askAgain = false; setTimeout(refresh, 1000); }
}

function put(fresh) {
  const now = parts(fresh);
  const names = new Set([...now].map((part) => part.dataset.part));
  const here = new Map([...parts(main)].map((part) => [part.dataset.part, part]));
  // Parts that came or went change the page around them.
  const isOther = names.size !== here.size || [...names].some((name) => !here.has(name));
  if (isOther && !isInUse(main)) {
    main.replaceChildren(...fresh.childNodes);
    known.clear();
    for (const part of parts(main)) known.set(part.dataset.part, part.outerHTML);
    count();
    return;
  }
  for (const part of now) {
    const name = part.dataset.part;
    const old = here.get(name);
    if (!old || known.get(name) === part.outerHTML || isInUse(old)) continue;
    const open = [...old.querySelectorAll('details')].map((details) => details.open);
    known.set(name, part.outerHTML);
    old.replaceWith(part);
    part.querySelectorAll('details').forEach((details, n) => { details.open = open[n] ?? details.open; });
  }
  count();
}

// What waits is counted in the menu.
const MENU = 'nav[aria-label="Pages"]';
function putMenu(fresh) {
  const menu = document.querySelector(MENU);
  if (fresh && menu.innerHTML !== fresh.innerHTML && !menu.contains(document.activeElement)) menu.replaceWith(fresh);
}

function say(words) { if (status.textContent !== words) status.textContent = words; }

// What the server wrote as "3 s ago" goes on counting.
function span(ms) {
  const s = Math.max(0, Math.floor(ms / 1000));
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${s % 60} s`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ${Math.floor(s / 60) % 60} min`;
  return `${Math.floor(s / 86400)} d ${Math.floor(s / 3600) % 24} h`;
}
function count() {
  const now = Date.now();
  for (const time of main.querySelectorAll('time[data-at]')) {
    const words = `${span(now - time.dataset.at)} ago`;
    if (time.textContent !== words) time.textContent = words;
  }
}

// Choices that need no button.
document.addEventListener('change', (event) => {
  if (event.target.matches('[data-sends]')) event.target.form.requestSubmit();
});

setInterval(() => { if (!document.hidden) count(); }, 1000);
if (main.dataset.every) setInterval(refresh, main.dataset.every * 1000);
document.addEventListener('visibilitychange', () => { if (!document.hidden && main.dataset.live) refresh(); });

if (main.dataset.live) {
  const feed = new EventSource(`/ui/live?what=${encodeURIComponent(main.dataset.live)}`);
  let isFirst = true;
  feed.addEventListener('changed', () => { if (!isFirst) refresh(); isFirst = false; });
  feed.addEventListener('open', () => { isFirst = false; refresh(); });
  feed.addEventListener('error', () => say('the server is away; trying again'));
}
