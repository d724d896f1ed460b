// `postern lock`: approves the current descriptions of the servers; with --check, shows the differences.

import { readServer } from '../catalog/approved-content.ts';
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
import { getMessage } from '../platform/error-code.ts';
import { escapeInvisible, toVisibleJson } from '../platform/invisible.ts';
import { countNoun } from '../platform/text.ts';
import { knowsUsers, needsUser } from '../servers/transport/transports.ts';
import { prepareEnvironment } from './command-line/env-file.ts';
import { CommandError } from './command-line/errors.ts';
import type { Flags, Invocation, Texts } from './command-line/invocation.ts';
import { readSecretOption } from './command-line/read-input.ts';
import { findLockPath, readLockFile, saveLockFile } from './setup/lock-file-on-disk.ts';
import { askServers, EVERY_CAPABILITY, readTokenUser } from './setup/open-servers.ts';
import { readConfiguration } from './setup/read-setup.ts';

/** @throws CommandError, UsageError, LockFileError */
export async function lock(
  options: Texts<'config' | 'token' | 'tokenFile'> & Flags<'check' | 'json'>,
  invocation: Invocation,
): Promise<void> {
  const { process, console } = invocation;
  prepareEnvironment(options, process.env);
  const token = await readSecretOption('--token', options.token, options.tokenFile, process);
  const user = token === undefined ? undefined : readTokenUser(token, systemClock.now());
  const { path, file } = await readConfiguration('lock', process.env);
  const lockPath = findLockPath(path);
  const former = readLockFile(lockPath);
  const caller = user ? { ...GATEWAY_CALLER, user } : GATEWAY_CALLER;
  const found = await askServers(file, process, TIME_LIMIT_MS, async (config, openOne) => {
    if (needsUser(config) && user === undefined) return { config, server: undefined };
    try {
      const server = await openOne(config, (upstream, signal) => readAll(upstream, caller, signal));
      return { config, server };
    } catch (error) {
      // No retry happens here, whatever the gateway would do.
      const problem = error instanceof UpstreamError ? error.logReason : getMessage(error);
      return { config, server: undefined, problem };
    }
  });
  const result = compare(lockPath, former, found);
  const updated = updateLockFile(
    former,
    found,
    (config) => user !== undefined && knowsUsers(config),
  );
  if (options.check) {
    if (result.differences.length > 0 || former === undefined) process.exitCode = 1;
  } else {
    // A server that could not be read keeps its approvals. If it has none, a lock would hide all of its entries.
    const missing = result.unread.filter(({ server }) => former?.servers.has(server) !== true);
    if (missing.length > 0)
      throw new CommandError(
        'Nothing was written. Run `postern lock` again once these servers answer, or leave them out with "disabled": true. None of their entries are approved yet, so a lock without them would hide all of them:',
        ...missing.map(({ server, problem }) => `${server}: ${problem}`),
      );
    await saveLockFile(lockPath, updated);
  }
  if (result.unread.length > 0) process.exitCode = 1;
  const text = options.json
    ? JSON.stringify(result, undefined, 2)
    : describeResult(result, former, options.check ? undefined : updated);
  // Servers choose their names and error messages.
  console.log(escapeInvisible(text));
}

type LockResult = ReturnType<typeof compare>;

function compare(path: string, former: LockFile = EMPTY_LOCK_FILE, found: readonly FoundServer[]) {
  // Servers that could not be read, and the reasons.
  const unread = found.flatMap(({ config: { name }, problem }) =>
    problem === undefined ? [] : [{ server: name, problem }],
  );
  // Servers that need a user, when none is given.
  const skipped = found
    .filter(({ server, problem }) => server === undefined && problem === undefined)
    .map(({ config }) => config.name);
  const servers = found.flatMap(({ config: { name }, server }) =>
    server ? [[name, server] as const] : [],
  );
  const now = { servers: new Map(servers) };
  const differences = findDifferences(former, now, (name) =>
    found.some(
      ({ config, problem }) =>
        config.name === name && (knowsUsers(config) || problem !== undefined),
    ),
  );
  return { path, differences, skipped, unread };
}

/** The first `npx` run downloads packages. */
const TIME_LIMIT_MS = 120_000;

/** Reads the server's descriptions for clients without capabilities, and for clients with all of them. */
async function readAll(
  upstream: Upstream,
  caller: UpstreamCaller,
  signal: AbortSignal,
): Promise<LockedServer> {
  const readLocked = async (one: UpstreamCaller) =>
    toLockedServer(await readServer(upstream, one, signal), systemClock);
  const plain = await readLocked(caller);
  // The gateway itself requests lists that all users share, and it has no capabilities.
  const { personalBy } = upstream.facts;
  const asClient = personalBy === 'isolation' || caller.user !== undefined;
  if (personalBy === undefined || !asClient) return plain;
  const able = { ...caller, clientId: 'postern lock', capabilities: EVERY_CAPABILITY };
  return mergeServers(plain, await readLocked(able));
}

/** `former`: the earlier lock, if any; `written`: the lock that replaced it. */
function describeResult(
  result: LockResult,
  former: LockFile | undefined,
  written: LockFile | undefined,
) {
  const { differences, skipped, unread } = result;
  const next = written
    ? ' Its earlier approvals stay. Run `postern lock` again once it answers.'
    : '';
  return [
    ...differences.map(({ server, kind, name, change, members }) => {
      const item = name === undefined ? kind : `${kind} ${toVisibleJson(name)}`;
      const which =
        kind === 'instructions' || members.length === 0 ? '' : `: ${members.join(', ')}`;
      return `${server}: ${item} ${CHANGES[change]}${which}`;
    }),
    skipped.length > 0 &&
      `Not read: ${skipped.join(', ')}, as they only answer users. Add --token-file FILE.`,
    ...unread.map(({ server, problem }) => `${server} could not be read: ${problem}.${next}`),
    written
      ? `Wrote ${result.path}: ${summarizeLock(written)}.`
      : describeCheck(result, former !== undefined),
  ]
    .filter(Boolean)
    .join('\n');
}

function describeCheck({ path, differences, unread }: LockResult, hasLock: boolean) {
  if (!hasLock)
    return `Nothing is locked: ${path} does not exist, or is {}. \`postern lock\` approves the current descriptions.`;
  if (differences.length > 0)
    return 'The gateway hides new and changed entries. `postern lock` approves them.';
  return `${path} matches the ${unread.length > 0 ? 'other ' : ''}servers.`;
}

const CHANGES: Readonly<Record<LockDifference['change'], string>> = {
  added: 'is new',
  removed: 'is gone',
  changed: 'has changed',
};

/** `12 tools and 3 prompts of 2 servers`; skills, which are rare, only if there are any. */
function summarizeLock({ servers }: LockFile) {
  const all = [...servers.values()];
  const count = (kind: 'tools' | 'prompts' | 'skills') =>
    all.reduce((sum, server) => sum + server[kind].size, 0);
  const tools = countNoun(count('tools'), 'tool');
  const prompts = countNoun(count('prompts'), 'prompt');
  const skills = count('skills');
  const listed =
    skills === 0
      ? `${tools} and ${prompts}`
      : `${tools}, ${prompts} and ${countNoun(skills, 'skill')}`;
  return `${listed} of ${countNoun(all.length, 'server')}`;
}
