// `postern lock`: approves what the servers say now; with --check it says what differs.

import { readServer } from '../catalog/fetch-list.ts';
import type { GatewayFile } from '../gateway/configuration/gateway-file.ts';
import {
  type FoundServer,
  findDifferences,
  type LockDifference,
  mergeServers,
  updateLockFile,
} from '../lock/lock.ts';
import {
  EMPTY_LOCK_FILE,
  type LockedServer,
  type LockFile,
  toLockedServer,
} from '../lock/lock-file.ts';
import {
  GATEWAY_CALLER,
  type Upstream,
  type UpstreamCaller,
  UpstreamError,
} from '../mcp/upstream/upstream.ts';

import { systemClock } from '../platform/clock.ts';
import { escapeInvisible, toVisibleJson } from '../platform/invisible.ts';
import { countNoun } from '../platform/text.ts';
import { knowsUsers, needsUser } from '../servers/transport/transports.ts';

import { prepareEnvironment } from './command-line/env-file.ts';
import { CommandError } from './command-line/errors.ts';
import type { Flags, Invocation, InvokedProcess, Texts } from './command-line/invocation.ts';
import { readSecretOption } from './command-line/read-input.ts';
import { findLockPath, readLockFile, saveLockFile } from './setup/lock-file-on-disk.ts';
import { askServers, EVERY_CAPABILITY, readTokenUser } from './setup/open-servers.ts';
import { readConfiguration } from './setup/read-setup.ts';

/** `check`: say what differs, and write nothing. */
type LockOptions = Texts<'config' | 'token' | 'tokenFile'> & Flags<'check' | 'json'>;

/** @throws CommandError, UsageError, LockFileError */
export async function lock(options: LockOptions, invocation: Invocation): Promise<void> {
  const { process, console } = invocation;
  prepareEnvironment(options, process.env);
  const secretOption = { value: options.token, file: options.tokenFile };
  const token = await readSecretOption('--token', secretOption, process);
  const user = token === undefined ? undefined : readTokenUser(token, systemClock.now());
  const { path, file } = await readConfiguration('lock', process.env);
  const lockPath = findLockPath(path);
  const former = readLockFile(lockPath);
  const caller = user ? { ...GATEWAY_CALLER, user } : GATEWAY_CALLER;
  const found = await readServers(file, caller, process);
  const result = { path: lockPath, ...compare(former, found) };
  const updated = updateLockFile(
    former,
    found,
    (config) => user !== undefined && knowsUsers(config),
  );
  if (options.check) {
    if (result.differences.length > 0 || former === undefined) process.exitCode = 1;
  } else {
    requireApproved(result.unread, former);
    await saveLockFile(lockPath, updated);
  }
  if (result.unread.length > 0) process.exitCode = 1;
  const text = options.json
    ? JSON.stringify(result, undefined, 2)
    : describeResult(result, options.check ? { former } : { updated });
  // Servers choose names, and what they say of their failure.
  console.log(escapeInvisible(text));
}

interface LockResult {
  readonly path: string;
  readonly differences: readonly LockDifference[];
  /** Servers that need a user, and none was given. */
  readonly skipped: readonly string[];
  /** Servers that could not be read, and why. */
  readonly unread: readonly { readonly server: string; readonly problem: string }[];
}

function compare(former: LockFile = EMPTY_LOCK_FILE, found: readonly FoundServer[]) {
  const unread = found.flatMap(({ config: { name }, problem }) =>
    problem === undefined ? [] : [{ server: name, problem }],
  );
  const skipped = found
    .filter(({ server, problem }) => server === undefined && problem === undefined)
    .map(({ config }) => config.name);
  const servers = found.flatMap(({ config: { name }, server }) =>
    server ? [[name, server] as const] : [],
  );
  const partial = new Set(
    found
      .filter(({ config, problem }) => knowsUsers(config) || problem !== undefined)
      .map(({ config }) => config.name),
  );
  const now = { servers: new Map(servers) };
  const differences = findDifferences(former, now, (name) => partial.has(name));
  return { differences, skipped, unread };
}

/**
 * A server that could not be read keeps what was approved of it. Where that is nothing, a lock would hide all of it.
 *
 * @throws CommandError
 */
function requireApproved(unread: LockResult['unread'], former: LockFile = EMPTY_LOCK_FILE): void {
  const missing = unread.filter(({ server }) => !former.servers.has(server));
  if (missing.length === 0) return;
  throw new CommandError(
    'Nothing was written. Run `postern lock` again once these servers answer, or leave them out with "disabled": true. Nothing of them is approved yet, so a lock without them would hide all that they have:',
    missing.map(({ server, problem }) => `${server}: ${problem}`),
  );
}

/** A first `npx` downloads. */
const TIME_LIMIT_MS = 120_000;

const readServers = (
  file: GatewayFile,
  caller: UpstreamCaller,
  process: InvokedProcess,
): Promise<readonly FoundServer[]> =>
  askServers(file, process, TIME_LIMIT_MS, async (config, openOne): Promise<FoundServer> => {
    if (needsUser(config) && caller.user === undefined) return { config, server: undefined };
    try {
      const server = await openOne(config, (upstream, signal) => readAll(upstream, caller, signal));
      return { config, server };
    } catch (error) {
      return { config, server: undefined, problem: describeError(error) };
    }
  });

/** Reads what the server says to clients that cannot be asked anything, and to those that can. */
async function readAll(
  upstream: Upstream,
  caller: UpstreamCaller,
  signal: AbortSignal,
): Promise<LockedServer> {
  const readLocked = async (one: UpstreamCaller) =>
    toLockedServer(await readServer(upstream, one, signal), systemClock);
  const plain = await readLocked(caller);
  // Lists that all users share are asked for by the gateway itself, which cannot be asked anything.
  const { personalBy } = upstream.facts;
  const asClient = personalBy === 'isolation' || caller.user !== undefined;
  if (personalBy === undefined || !asClient) return plain;
  const able = { ...caller, clientId: 'postern lock', capabilities: EVERY_CAPABILITY };
  return mergeServers(plain, await readLocked(able));
}

/** Nothing is tried again here, whatever the gateway would do. */
function describeError(error: unknown): string {
  if (error instanceof UpstreamError) return error.logReason;
  return error instanceof Error ? error.message : String(error);
}

/** The lock that was compared with, undefined where there was none; or the one that was written. */
type LockOutcome = { readonly former: LockFile | undefined } | { readonly updated: LockFile };

function describeResult(result: LockResult, outcome: LockOutcome): string {
  const { differences, skipped, unread } = result;
  const next = 'updated' in outcome ? ` ${KEPT}` : '';
  return [
    ...differences.map(describeDifference),
    ...(skipped.length > 0
      ? [`Not read: ${skipped.join(', ')}, as they answer users only. Add --token-file FILE.`]
      : []),
    ...unread.map(({ server, problem }) => `${server} could not be read: ${problem}.${next}`),
    'updated' in outcome
      ? `Wrote ${result.path}: ${summarizeLock(outcome.updated)}.`
      : describeCheck(result, outcome.former !== undefined),
  ].join('\n');
}

const KEPT =
  'What was approved of it before stays approved. Run `postern lock` again once it answers.';

function describeCheck({ path, differences, unread }: LockResult, hasLock: boolean): string {
  if (!hasLock)
    return `Nothing is locked: ${path} is not there, or is {}. \`postern lock\` approves what the servers say now.`;
  if (differences.length > 0)
    return 'The gateway hides what is new or has changed. `postern lock` approves it.';
  return `${path} is what the ${unread.length > 0 ? 'other ' : ''}servers say now.`;
}

/** `github: tool "search" has changed: description, inputSchema`. */
function describeDifference({ server, kind, name, change, members }: LockDifference): string {
  const item = name === undefined ? kind : `${kind} ${toVisibleJson(name)}`;
  const which = kind === 'instructions' || members.length === 0 ? '' : `: ${members.join(', ')}`;
  return `${server}: ${item} ${CHANGES[change]}${which}`;
}

const CHANGES: Readonly<Record<LockDifference['change'], string>> = {
  added: 'is new',
  removed: 'is gone',
  changed: 'has changed',
};

/** `12 tools and 3 prompts of 2 servers`; skills, which few servers have, where there are some. */
function summarizeLock({ servers }: LockFile): string {
  const all = [...servers.values()];
  const tools = all.reduce((sum, server) => sum + server.tools.size, 0);
  const prompts = all.reduce((sum, server) => sum + server.prompts.size, 0);
  const skills = all.reduce((sum, server) => sum + server.skills.size, 0);
  const listed =
    skills === 0
      ? `${countNoun(tools, 'tool')} and ${countNoun(prompts, 'prompt')}`
      : `${countNoun(tools, 'tool')}, ${countNoun(prompts, 'prompt')} and ${countNoun(skills, 'skill')}`;
  return `${listed} of ${countNoun(all.length, 'server')}`;
}
