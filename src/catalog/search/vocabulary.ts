// §25.3: texts as the terms by which they are found: words without their endings.

/** Characters that are read of one text: what is longer costs no more. */
const MAX_TEXT = 2_048;
/** Characters of one word. */
const MAX_WORD = 40;

/**
 * In their order, with repetitions. Scripts that are written without spaces, as Chinese and Japanese, have each character for
 * a term.
 */
export function listTerms(text: string): readonly string[] {
  const words = listWords(text.slice(0, MAX_TEXT));
  return words.flatMap((word) => (STOP_WORDS.has(word) ? [] : [stem(word.slice(0, MAX_WORD))]));
}

/** The same of a name such as `listPullRequests` or `list_pull_requests`: its parts, and the whole where that is one word. */
export function listNameTerms(name: string): readonly string[] {
  const parts = name.slice(0, MAX_TEXT).replace(HUMP, '$1 $2');
  return parts === name ? listTerms(name) : [...listTerms(parts), ...listTerms(name)];
}

/** Nearly all text is ASCII, which is read ten times as fast. */
const listWords = (text: string): readonly string[] =>
  (NOT_ASCII.test(text)
    ? text.normalize('NFKC').toLowerCase().match(WORDS)
    : text.toLowerCase().match(ASCII_WORDS)) ?? [];

const NOT_ASCII = /[^\p{ASCII}]/u;
const ASCII_WORDS = /[a-z0-9]+/g;
const SPACELESS =
  '\\p{sc=Han}\\p{sc=Hira}\\p{sc=Kana}\\p{sc=Thai}\\p{sc=Lao}\\p{sc=Khmr}\\p{sc=Mymr}';
const WORDS = new RegExp(`[${SPACELESS}]|(?:(?![${SPACELESS}])[\\p{L}\\p{M}\\p{N}])+`, 'gu');
const HUMP = /(\p{Ll}|\p{N})(\p{Lu})/gu;

/** English words that say nothing of what a tool does. */
const STOP_WORDS: ReadonlySet<string> = new Set(
  `a about again already also an and another any are as at be been before both but by can could did do does each else for from had
   has have he her here his how i if in into is it its just let like may me more most must my no not now of off on once one only
   or other our out own per please s same she should so some still such t than that the their them then there these they this
   those through to too up us use used uses using very via want wants was we were what when where which while who whose why will
   with within without would you your`.split(/\s+/),
);

/**
 * Without the endings by which forms of one English word differ, so that `creates`, `creating` and `creation` are one term.
 * What comes out need not be a word.
 */
function stem(word: string): string {
  if (word.length <= 3 || !ENGLISH.test(word)) return word;
  return dropFinalE(dropEnding(dropPlural(word)));
}

const ENGLISH = /^[a-z]+$/;
/** `-er` is left at short words, as `user` and `order`. */
const ENDING = /^(.{3,})(?:ing|ed)$|^(.{5,})er$/;
const VOWEL = /[aeiouy]/;
const DOUBLED = /([bdfgmnprt])\1$/;

function dropPlural(word: string): string {
  if (word.endsWith('ies') && word.length > 4) return `${word.slice(0, -3)}y`;
  if (/(?:ss|x|ch|sh|zz)es$/.test(word)) return word.slice(0, -2);
  return /[^sui]s$/.test(word) ? word.slice(0, -1) : word;
}

function dropEnding(word: string): string {
  if (/[ts]ion$/.test(word) && word.length > 6) return word.slice(0, -3);
  const [, plain, agent] = ENDING.exec(word) ?? [];
  const rest = plain ?? agent ?? '';
  if (!VOWEL.test(rest)) return word;
  return DOUBLED.test(rest) ? rest.slice(0, -1) : rest;
}

const dropFinalE = (word: string): string =>
  word.length > 3 && word.endsWith('e') ? word.slice(0, -1) : word;

// §25.3: words that people and tools use for the same thing: who asks to "cancel a meeting" means `delete-event`.

/** Each line is one meaning; a word may have several. */
const MEANINGS = `
create add new make insert compose write generate open
delete remove erase drop cancel forget clear discard uninstall unset
update edit change modify alter adjust set patch replace rewrite mark
get show read retrieve fetch view display see give return tell
find search look lookup query locate
list all every which browse
move transfer relocate rename transition
send post submit deliver publish
save write store overwrite
start run launch execute trigger begin
stop end finish halt terminate
close complete done resolve finish
copy clone duplicate fork
compare diff difference
attach upload attachment
reply respond answer response
undo revert rollback restore
approve accept confirm
decline reject refuse
invite invitation attendee guest
watch follow subscribe
assign assignee owner responsible
depend dependency block prerequisite
connect link relate associate relation association
event meeting appointment invitation agenda schedule
free busy available availability
due deadline overdue
email mail inbox
message text chat
thread conversation discussion
channel room
react reaction emoji
issue ticket bug defect story
task todo
sprint iteration
user member person people colleague teammate profile
contact company deal lead customer object
permission access restriction right allow
folder directory
file document yaml json txt md csv pdf
record row entry
field column property attribute
database table sql schema
comment remark feedback note
image picture photo screenshot
page article wiki
log history worklog
status state transition progress
label tag
version release revision
commit sha revision
website site web internet url link
navigate visit go
type enter input fill
click press tap
place location restaurant shop business
drive walk travel route direction distance duration
address coordinate
documentation docs manual guide reference
library package module
kubernetes pod container namespace cluster deployment
host machine node
metric usage measure cpu
monitor alert alarm
incident outage downtime maintenance
trace latency slow performance
error failure exception
chart graph plot diagram
payment charge invoice
remember memory
contain content
build pipeline workflow job ci
password secret credential
bucket storage blob
function lambda
price cost billing
order purchase
book reserve booking reservation
call phone
`;

/** Short forms, and the words that they stand for. */
const SPELLED_OUT: Readonly<Record<string, readonly string[]>> = {
  cpu: ['metric'],
  db: ['database'],
  dir: ['directory'],
  docs: ['documentation'],
  k8s: ['kubernetes'],
  mr: ['merge', 'request'],
  msg: ['message'],
  pr: ['pull', 'request'],
  prs: ['pull', 'request'],
  repo: ['repository'],
  repos: ['repository'],
};

const meanings = new Map<string, string[]>();
for (const [at, line] of MEANINGS.trim().split('\n').entries()) {
  for (const word of line.split(' ')) {
    const known = meanings.get(stem(word)) ?? [];
    // No term of a text is written so.
    meanings.set(stem(word), [...known, `=${at}`]);
  }
}

const spelledOut = new Map(
  Object.entries(SPELLED_OUT).map(([short, words]) => [short, words.map(stem)]),
);

/** The meanings of a term: terms of their own, which documents that have another word of the same meaning have, too. */
export const listMeanings = (term: string): readonly string[] => meanings.get(term) ?? NONE;

/** The words that the term of a query stands for, beside itself. */
export const spellOut = (term: string): readonly string[] => spelledOut.get(term) ?? NONE;

const NONE: readonly string[] = [];
