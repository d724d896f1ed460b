// §25.3: words that people and tools use for the same thing: who asks to "cancel a meeting" means `delete-event`.

import { stem } from './terms.ts';

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

/** What is said shortly, and the words that it stands for. */
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

/** Of a term; terms of their own, which documents that have another word of the same meaning have, too. */
export const listMeanings = (term: string): readonly string[] => meanings.get(term) ?? NONE;

/** What the term of a query stands for, beside itself. */
export const spellOut = (term: string): readonly string[] => spelledOut.get(term) ?? NONE;

const NONE: readonly string[] = [];
