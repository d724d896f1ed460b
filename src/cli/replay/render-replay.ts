// What `postern rules replay` prints: what would be different, what nobody can tell, and what was used of each rule.
import { toVisibleJson } from '../../platform/invisible.ts';
import { alignColumns } from '../command/texts.ts';
import type { CountedCalls, DecisionChange, TallyResult, UnknownCalls, UsedRule } from './tally.ts';

interface Replayed extends TallyResult {
  /** Undefined where no line has a time. */
  readonly from?: string;
  readonly to?: string;
  readonly unreadable: number;
}

export function renderReplay(found: Replayed, path: string): string {
  const { changes, unknown } = found;
  const sections = [
    [describeAll(found, path)],
    ...CHANGES.map(({ change, title, explain }) =>
      renderSection(
        title,
        changes.filter((one) => one.change === change),
        ({ rules }) => explain(rules.join('; ')),
      ),
    ),
    renderSection(
      'Allowed, once somebody has agreed:',
      found.asked,
      ({ ask, rules }) => `asks ${ask}: ${rules.join('; ')}`,
    ),
    renderSection(
      'Allowed; whether somebody is asked first cannot be told, for want of what the log does not have:',
      found.mayBeAsked,
      describeMissing,
    ),
    renderSection(
      'Cannot be told, for want of what the log does not have:',
      unknown,
      describeMissing,
    ),
    renderUse(found.rules),
    listNotes(found),
  ];
  return sections
    .filter((lines) => lines.length > 0)
    .map((lines) => lines.join('\n'))
    .join('\n\n');
}

const CHANGES: readonly {
  readonly change: DecisionChange;
  readonly title: string;
  explain(rules: string): string;
}[] = [
  {
    change: 'refused',
    title: 'Would be refused:',
    explain: (rules) => (rules === '' ? 'no rule names it' : `not by ${rules}`),
  },
  {
    change: 'needs_scope',
    title: 'Would need a scope:',
    explain: (rules) => rules,
  },
  {
    change: 'allowed',
    title: 'Would be allowed:',
    explain: (rules) => (rules === '' ? 'there are no rules' : rules),
  },
];

function describeAll(found: Replayed, path: string): string {
  const { calls, from, to, changes, unknown, stayAllowed, stayRefused } = found;
  const sum = (rows: readonly CountedCalls[]) => rows.reduce((all, row) => all + row.calls, 0);
  const of = (change: DecisionChange) =>
    format(sum(changes.filter((one) => one.change === change)));
  return [
    `${countCalls(calls)}${from === undefined ? '' : ` from ${from} to ${to}`}, by ${path}:`,
    `${of('refused')} would be refused, ${of('allowed')} would be allowed, ${of('needs_scope')} would need a scope, ${format(sum(unknown))} cannot be told.`,
    `${format(stayAllowed)} stay allowed, ${format(stayRefused)} stay refused.`,
  ].join('\n');
}

const describeMissing = ({ missing, rules }: UnknownCalls): string =>
  `${missing.join(', ')}: ${rules.join('; ')}`;

/** Of a section. */
const MAX_ROWS = 50;

function renderSection<Row extends CountedCalls>(
  title: string,
  rows: readonly Row[],
  explain: (row: Row) => string,
): readonly string[] {
  if (rows.length === 0) return [];
  const cells = rows
    .slice(0, MAX_ROWS)
    .map((row) => [
      `  ${format(row.calls)}`,
      nameUser(row),
      toVisible(row.kind === 'tool' ? row.name : `${row.kind}:${row.name}`),
      explain(row),
    ]);
  return [title, ...alignColumns(cells), ...describeRest(rows.length)];
}

const nameUser = ({ user, issuer }: CountedCalls): string =>
  [
    ...(user === null ? ['(nobody logged in)'] : [toVisible(user)]),
    ...(issuer === undefined ? [] : [`of ${toVisible(issuer)}`]),
  ].join(' ');

const describeRest = (rows: number): readonly string[] =>
  rows > MAX_ROWS ? [`  and ${format(rows - MAX_ROWS)} more rows; --json prints all`] : [];

function renderUse(rules: readonly UsedRule[]): readonly string[] {
  if (rules.length === 0) return [];
  return [
    'What each rule allowed that somebody used (each call counts for the first rule that allows it):',
    ...rules.flatMap(({ rule, used, unused }) => [
      `  ${rule}`,
      used.length === 0
        ? '    nothing'
        : `    ${used.slice(0, MAX_ROWS).map(describeUse).join(', ')}${used.length > MAX_ROWS ? ` and ${format(used.length - MAX_ROWS)} more` : ''}`,
      ...(used.length === 0 || unused.length === 0
        ? []
        : [`    not used: ${unused.map(toVisible).join(', ')}`]),
    ]),
  ];
}

const describeUse = ({ name, calls, users }: UsedRule['used'][number]): string =>
  `${toVisible(name)} (${countCalls(calls)}, ${users === 1 ? '1 user' : `${format(users)} users`})`;

function listNotes({ stopped, unjudged, unreadable, unknown }: Replayed): readonly string[] {
  const lacksClaims = unknown.some(({ missing }) => missing.some((one) => one.startsWith('user.')));
  return [
    ...(lacksClaims
      ? [
          'Lines have the groups and claims that rules named when they were written, with AUDIT_CLAIMS=true.',
        ]
      : []),
    ...(stopped === 0
      ? []
      : [`Not judged: ${countCalls(stopped)} that something else than rules stopped.`]),
    ...(unjudged === 0
      ? []
      : [
          `Not judged: ${countCalls(unjudged)} that ended before rules were asked, such as those of unknown names.`,
        ]),
    ...(unreadable === 0 ? [] : [`Not read: ${format(unreadable)} lines that are no JSON.`]),
  ];
}

const countCalls = (calls: number): string => (calls === 1 ? '1 call' : `${format(calls)} calls`);

const format = (count: number): string => count.toLocaleString('en');

/** Callers choose names: nothing of them moves the cursor of a terminal. */
function toVisible(text: string): string {
  const json = toVisibleJson(text);
  return json === `"${text}"` ? text : json;
}
