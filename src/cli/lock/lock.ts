// `postern lock`: approves what the servers say now; with --check it says what differs.
import type { GatewayFile } from '../../gateway/configuration/gateway-file.ts';
import type { ClientCapabilities } from '../../mcp/catalog/client-requests.ts';
import { systemClock } from '../../platform/clock.ts';
import { escapeInvisible } from '../../platform/invisible.ts';
import type { UpstreamConfig } from '../../upstreams/config/upstream-config.ts';
import {
  dependsOnUser,
  knowsUsers,
  needsUser,
} from '../../upstreams/credentials/server-credentials.ts';
import {
  type FoundServer,
  findDifferences,
  mergeServers,
  updateLockFile,
} from '../../upstreams/lock/compare.ts';
import {
  EMPTY_LOCK_FILE,
  type LockedServer,
  type LockFile,
} from '../../upstreams/lock/lock-file.ts';
import { readServer, toLockedServer } from '../../upstreams/lock/read-server.ts';
import {
  GATEWAY_CALLER,
  type Upstream,
  type UpstreamCaller,
  UpstreamError,
} from '../../upstreams/upstream.ts';
import { prepareEnvironment } from '../command/env-file.ts';
import { CommandError } from '../command/errors.ts';
import type { Invocation, InvokedProcess } from '../command/invocation.ts';
import { readSecretOption } from '../command/secret-option.ts';
import { showSpinner } from '../command/spinner.ts';
import { findLockPath, readLockFile, saveLockFile } from '../setup/lock-file-on-disk.ts';
import { createStderrLog, type OpenServers, openServers, readUser } from '../setup/open-servers.ts';
import { readConfiguration } from '../setup/read-configuration.ts';
import { describeResult, type LockResult } from './describe-result.ts';

interface LockOptions {
  /** In place of POSTERN_CONFIG. */
  readonly config: string | undefined;
  /** An access token of a user, as whom the servers are asked; `-` for standard input. A secret. */
  readonly token: string | undefined;
  /** In place of `token`: a file that has it. */
  readonly tokenFile: string | undefined;
  /** Say what differs, and write nothing. */
  readonly check: boolean;
  /** Print JSON. */
  readonly json: boolean;
}

/** @throws CommandError, UsageError, LockFileError */
export async function lock(options: LockOptions, invocation: Invocation): Promise<void> {
  const { process, console } = invocation;
  prepareEnvironment(options, process.env);
  const secretOption = { value: options.token, file: options.tokenFile };
  const token = await readSecretOption('--token', secretOption, process);
  const user = token === undefined ? undefined : readUser(token, systemClock.now());
  const { path, file } = await readConfiguration('lock', process.env);
  const lockPath = findLockPath(path);
  const former = readLockFile(lockPath);
  const caller = user ? { ...GATEWAY_CALLER, user } : GATEWAY_CALLER;
  const found = await readServers(file, caller, process);
  const result = { path: lockPath, ...compare(former, found) };
  const updated = updateLockFile(former, found, user !== undefined);
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

function compare(
  former: LockFile = EMPTY_LOCK_FILE,
  found: readonly FoundServer[],
): Omit<LockResult, 'path'> {
  const unread = found.flatMap(({ config: { name }, problem }) =>
    problem === undefined ? [] : [{ server: name, problem }],
  );
  const skipped = found
    .filter(({ server, problem }) => server === undefined && problem === undefined)
    .map(({ config }) => config.name);
  const now: LockFile = {
    servers: new Map(
      found.flatMap(({ config, server }) => (server ? [[config.name, server] as const] : [])),
    ),
  };
  const partial = new Set(
    found
      .filter(({ config, problem }) => knowsUsers(config) || problem !== undefined)
      .map(({ config }) => config.name),
  );
  return {
    differences: findDifferences(former, now, (name) => partial.has(name)),
    skipped,
    unread,
  };
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

/** What each server says, or why it could not be read. */
async function readServers(
  { servers, ...file }: GatewayFile,
  caller: UpstreamCaller,
  process: InvokedProcess,
): Promise<readonly FoundServer[]> {
  const opened = await openServers(
    { servers, ...file },
    { env: process.env, log: createStderrLog(process) },
  );
  // Keeps this process alive: the timers of the gateway do not, and for a moment there may be nothing else.
  const staying = setInterval(() => {}, 1000);
  const endSpinner = showSpinner('Asking', process);
  try {
    return await Promise.all(
      servers.map((config) =>
        readConfigured(config, caller, opened).catch((error: unknown) => ({
          config,
          server: undefined,
          problem: describeError(error),
        })),
      ),
    );
  } finally {
    endSpinner();
    clearInterval(staying);
    await opened.close();
  }
}

/** A first `npx` downloads. */
const TIME_LIMIT_MS = 120_000;

async function readConfigured(
  config: UpstreamConfig,
  caller: UpstreamCaller,
  { openUpstream }: OpenServers,
): Promise<FoundServer> {
  if (needsUser(config) && caller.user === undefined) return { config, server: undefined };
  const upstream = openUpstream(config);
  const signal = AbortSignal.timeout(TIME_LIMIT_MS);
  const tooLate = new Promise<never>((_, reject) => {
    const message = `it did not answer within ${TIME_LIMIT_MS / 1000} s`;
    signal.addEventListener('abort', () => reject(new Error(message)), { once: true });
  });
  try {
    return { config, server: await Promise.race([readAll(upstream, caller, signal), tooLate]) };
  } finally {
    await upstream.close(0);
  }
}

/** What the server says to clients that cannot be asked anything, and to those that can. */
async function readAll(
  upstream: Upstream<UpstreamConfig>,
  caller: UpstreamCaller,
  signal: AbortSignal,
): Promise<LockedServer> {
  const readLocked = async (one: UpstreamCaller) =>
    toLockedServer(await readServer(upstream, one, signal), systemClock);
  const plain = await readLocked(caller);
  const { config } = upstream;
  // Lists that all users share are asked for by the gateway itself, which cannot be asked anything.
  const asClient = config.kind === 'stdio' || caller.user !== undefined;
  if (!dependsOnUser(config) || !asClient) return plain;
  const able = { ...caller, clientId: 'postern lock', capabilities: EVERY_CAPABILITY };
  return mergeServers(plain, await readLocked(able));
}

const EVERY_CAPABILITY: ClientCapabilities = {
  elicitation: true,
  elicitationUrl: true,
  sampling: true,
  roots: true,
};

/** Nothing is tried again here, whatever the gateway would do. */
function describeError(error: unknown): string {
  if (error instanceof UpstreamError) return error.reason;
  return error instanceof Error ? error.message : String(error);
}
