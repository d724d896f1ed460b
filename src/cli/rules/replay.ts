// `postern rules replay`: evaluates rules against the calls in an audit log.
import { toSharedUri } from '../../catalog/apps/app-tools.ts';
import { CONNECT, createNaming } from '../../catalog/prepare-list.ts';
import { isSearchTool } from '../../catalog/search/search-tools.ts';
import {
  createReplay,
  type LoggedCall,
  type ReplayVerdict,
} from '../../control/rules/replay-rules.ts';
import type { GatewayFile } from '../../gateway/configuration/gateway-file.ts';
import type { UpstreamConfig } from '../../mcp/upstream/upstream-config.ts';
import { createBoundedMap } from '../../platform/bounded-map.ts';
import { escapeInvisible } from '../../platform/invisible.ts';
import { findFacts } from '../../servers/transport/transports.ts';
import { prepareEnvironment } from '../command-line/env-file.ts';
import { CommandError, UsageError } from '../command-line/errors.ts';
import type { Flags, Invocation, Texts } from '../command-line/invocation.ts';
import { alignColumns, formatCount, toVisibleName } from '../command-line/terminal.ts';
import { readConfiguration } from '../setup/read-setup.ts';
import { type CallLine, readAuditLog } from './read-audit-log.ts';
import {
  type CountedCalls,
  createTally,
  type DecisionChange,
  type TallyResult,
  toRuleName,
  type UnknownCalls,
  type UsedRule,
} from './report.ts';

/** @throws UsageError, CommandError */
export async function replay(
  options: Texts<'config'> & Flags<'json'> & { readonly audit: readonly string[] },
  { process, console }: Invocation,
): Promise<void> {
  const { audit: paths } = options;
  prepareEnvironment(options, process.env);
  if (paths.length === 0)
    throw new UsageError(
      'postern rules replay needs an audit log (AUDIT_LOG), for example --audit audit.log.',
    );
  const { path, file } = await readConfiguration('rules replay', process.env);
  const judge = createJudge(file, await createReplay(file.rules));
  const tally = createTally(file.rules);
  const read: { from?: string; to?: string; unreadable: number } = { unreadable: 0 };
  let hasCalls = false;
  for (const auditPath of paths) {
    for await (const line of readAuditLog(auditPath, process)) {
      if (line === 'broken') read.unreadable += 1;
      if (line === undefined || line === 'broken') continue;
      hasCalls = true;
      const { time } = line;
      if (time !== undefined) {
        if (read.from === undefined || isBefore(time, read.from)) read.from = time;
        if (read.to === undefined || isBefore(read.to, time)) read.to = time;
      }
      const { call, verdict } = judge(line);
      tally.count(call, line.result, verdict);
    }
  }
  if (!hasCalls)
    throw new CommandError(
      'There are no calls to check:',
      `${paths.join(', ')} has no lines for calls. The gateway writes them with AUDIT_LOG.`,
    );
  const found = { ...read, ...tally.finish() };
  const printed = options.json ? JSON.stringify(found, undefined, 2) : renderReplay(found, path);
  console.log(escapeInvisible(printed));
}

const isBefore = (time: string, other: string) => Date.parse(time) < Date.parse(other);

interface JudgedLine {
  readonly call: LoggedCall;
  readonly verdict: ReplayVerdict;
}

/** Rules refer to every item by its name on `/mcp`. */
function createJudge(file: GatewayFile, judge: (call: LoggedCall) => ReplayVerdict) {
  const naming = createNaming(file);
  const servers = new Map(file.servers.map((server) => [server.name, server]));
  const doors = new Map(
    file.servers
      .filter((server) => findFacts(server).connection !== undefined)
      .map((server) => [naming.join(server, CONNECT), server]),
  );
  const searched = new Set(
    (file.views ?? []).flatMap((one): (string | undefined)[] => (one.search ? [one.name] : [])),
  );

  const toJoinedName = (kind: CallLine['kind'], name: string, server: UpstreamConfig) =>
    kind === 'resource' ? toSharedUri(server.name, name) : naming.join(server, name);
  const known = createBoundedMap<string, JudgedLine>('replayedCalls');

  return function judgeLine(line: CallLine): JudgedLine {
    const { kind, name, isWhole, server, view, user, issuer, client, who } = line;
    const key = JSON.stringify([kind, name, isWhole, server, view, user, issuer, client, who]);
    const remembered = known.get(key);
    if (remembered !== undefined) return remembered;

    const own = view === undefined ? undefined : servers.get(view);
    // An app may have called a tool of its server by the server's own name for the tool (§30.2).
    const isOfApp = kind === 'tool' && !naming.findOwners(name).includes(server);
    const namer = own ?? (isOfApp ? servers.get(server) : undefined);
    const joined = namer === undefined ? name : toJoinedName(kind, name, namer);
    const door = kind === 'tool' ? doors.get(joined) : undefined;
    const namesBegin = door && naming.findStart(door);
    const isOpen = kind === 'tool' && searched.has(view) && server === '' && isSearchTool(name);
    const call: LoggedCall = {
      item: { kind, name: joined, server, namesBegin, isOpen },
      isWhole,
      user,
      issuer,
      described: who,
      clientId: client,
      view: own === undefined ? view : undefined,
    };
    const judged = { call, verdict: judge(call) };
    known.set(key, judged);
    return judged;
  };
}

// The output of `postern rules replay`: changed decisions, undecidable calls, and the use of each rule.

interface Replayed extends TallyResult {
  /** Undefined if no line has a time. */
  readonly from?: string;
  readonly to?: string;
  readonly unreadable: number;
}

function renderReplay(found: Replayed, path: string) {
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
      'Allowed, after an approval:',
      found.asked,
      ({ ask, rules }) => `asks ${ask}: ${rules.join('; ')}`,
    ),
    renderSection(
      'Allowed; whether an approval is required is unknown, because the log lacks:',
      found.mayBeAsked,
      describeMissing,
    ),
    renderSection('Undecidable, because the log lacks:', unknown, describeMissing),
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
  { change: 'needs_scope', title: 'Would need a scope:', explain: (rules) => rules },
  {
    change: 'allowed',
    title: 'Would be allowed:',
    explain: (rules) => (rules === '' ? 'there are no rules' : rules),
  },
];

function describeAll(found: Replayed, path: string) {
  const { calls, from, to, changes, unknown, stayAllowed, stayRefused } = found;
  const sum = (rows: readonly CountedCalls[]) => rows.reduce((all, row) => all + row.calls, 0);
  const of = (change: DecisionChange) =>
    formatCount(sum(changes.filter((one) => one.change === change)));
  return [
    `${countCalls(calls)}${from === undefined ? '' : ` from ${from} to ${to}`}, by ${path}:`,
    `${of('refused')} would be refused, ${of('allowed')} would be allowed, ${of('needs_scope')} would need a scope, ${formatCount(sum(unknown))} undecidable.`,
    `${formatCount(stayAllowed)} stay allowed, ${formatCount(stayRefused)} stay refused.`,
  ].join('\n');
}

const describeMissing = ({ missing, rules }: UnknownCalls) =>
  `${missing.join(', ')}: ${rules.join('; ')}`;

/** Maximum rows per section. */
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
      `  ${formatCount(row.calls)}`,
      nameUser(row),
      toVisibleName(toRuleName(row)),
      explain(row),
    ]);
  const rest = rows.length - MAX_ROWS;
  return [
    title,
    ...alignColumns(cells),
    ...(rest > 0 ? [`  and ${formatCount(rest)} more rows; --json prints all`] : []),
  ];
}

const nameUser = ({ user, issuer }: CountedCalls) => {
  const name = user === null ? '(not logged in)' : toVisibleName(user);
  return issuer === undefined ? name : `${name} of ${toVisibleName(issuer)}`;
};

function renderUse(rules: readonly UsedRule[]): readonly string[] {
  if (rules.length === 0) return [];
  return [
    'Used entries of each rule (each call counts for the first rule that allows it):',
    ...rules.flatMap(({ rule, used, unused }) => [
      `  ${rule}`,
      used.length === 0
        ? '    nothing'
        : `    ${used.slice(0, MAX_ROWS).map(describeUse).join(', ')}${used.length > MAX_ROWS ? ` and ${formatCount(used.length - MAX_ROWS)} more` : ''}`,
      ...(used.length === 0 || unused.length === 0
        ? []
        : [`    not used: ${unused.map(toVisibleName).join(', ')}`]),
    ]),
  ];
}

const describeUse = ({ name, calls, users }: UsedRule['used'][number]) =>
  `${toVisibleName(name)} (${countCalls(calls)}, ${users === 1 ? '1 user' : `${formatCount(users)} users`})`;

function listNotes({ stopped, unjudged, unreadable, unknown }: Replayed): readonly string[] {
  const lacksClaims = unknown.some(({ missing }) => missing.some((one) => one.startsWith('user.')));
  return [
    lacksClaims &&
      'Lines have the groups and claims that rules named when they were written, with AUDIT_CLAIMS=true.',
    stopped > 0 && `Not checked: ${countCalls(stopped)} stopped by something other than rules.`,
    unjudged > 0 &&
      `Not checked: ${countCalls(unjudged)} that ended before rules were applied, such as calls with unknown names.`,
    unreadable > 0 && `Not read: ${formatCount(unreadable)} lines that are not JSON.`,
  ].filter((note) => note !== false);
}

const countCalls = (calls: number) => (calls === 1 ? '1 call' : `${formatCount(calls)} calls`);
