// `postern rules replay`: what rules would have done with the calls of an audit log.

import { toSharedUri } from '../../catalog/apps/app-tools.ts';
import { createNaming } from '../../catalog/naming.ts';
import { isSearchTool } from '../../catalog/search/search-tools.ts';
import { CONNECT } from '../../connections/doors/connect-tool.ts';
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
import { prepareEnvironment } from '../command/env-file.ts';
import { CommandError, UsageError } from '../command/errors.ts';
import type { Flags, Invocation, Texts } from '../command/invocation.ts';
import { readConfiguration } from '../setup/read-configuration.ts';
import { type CallLine, readAuditLog } from './read-audit-log.ts';
import { renderReplay } from './render-replay.ts';
import { createTally } from './tally.ts';

type ReplayOptions = Texts<'config'> & Flags<'json'> & { readonly audit: readonly string[] };

/** @throws UsageError, CommandError */
export async function replay(
  options: ReplayOptions,
  { process, console }: Invocation,
): Promise<void> {
  const { audit: paths } = options;
  prepareEnvironment(options, process.env);
  if (paths.length === 0) {
    throw new UsageError(
      'postern rules replay needs what AUDIT_LOG wrote, for example --audit audit.log.',
    );
  }
  const { path, file } = await readConfiguration('rules replay', process.env);
  const judge = createJudge(await createReplay(file.rules), createToCall(file));
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
  if (!hasCalls) {
    throw new CommandError('There is nothing to judge:', [
      `${paths.join(', ')} has no line of a call. AUDIT_LOG makes the gateway write them.`,
    ]);
  }
  const found = { ...read, ...tally.finish() };
  const printed = options.json ? JSON.stringify(found, undefined, 2) : renderReplay(found, path);
  console.log(escapeInvisible(printed));
}

const isBefore = (time: string, other: string): boolean => Date.parse(time) < Date.parse(other);

interface JudgedLine {
  readonly call: LoggedCall;
  readonly verdict: ReplayVerdict;
}

/** Most calls are like one before. */
const MAX_REMEMBERED = 100_000;

function createJudge(
  judge: (call: LoggedCall) => ReplayVerdict,
  toCall: (line: CallLine) => LoggedCall,
): (line: CallLine) => JudgedLine {
  const known = createBoundedMap<string, JudgedLine>(MAX_REMEMBERED);

  return function judgeLine(line) {
    const { kind, name, isWhole, server, view, user, issuer, client, who } = line;
    const key = JSON.stringify([kind, name, isWhole, server, view, user, issuer, client, who]);
    const remembered = known.get(key);
    if (remembered !== undefined) return remembered;
    const call = toCall(line);
    const judged = { call, verdict: judge(call) };
    known.set(key, judged);
    return judged;
  };
}

/** Rules know everything by its name at `/mcp`. */
function createToCall(file: GatewayFile): (line: CallLine) => LoggedCall {
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

  return function toCall({ kind, name, isWhole, server, view, user, issuer, client, who }) {
    const own = view === undefined ? undefined : servers.get(view);
    // An app may have called a tool of its server by the server's name for it (§30.2).
    const isOfApp = kind === 'tool' && !naming.findOwners(name).includes(server);
    const namer = own ?? (isOfApp ? servers.get(server) : undefined);
    const joined = namer === undefined ? name : toJoinedName(kind, name, namer);
    const door = kind === 'tool' ? doors.get(joined) : undefined;
    const namesBegin = door && naming.findStart(door);
    const isOpen = kind === 'tool' && searched.has(view) && server === '' && isSearchTool(name);
    return {
      item: { kind, name: joined, server, namesBegin, isOpen },
      isWhole,
      user,
      issuer,
      described: who,
      clientId: client,
      view: own === undefined ? view : undefined,
    };
  };
}
