// Queries the servers, for `postern lock` and other commands, without a running gateway.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Config } from '../../config/config.ts';
import { formatProblem } from '../../config/problem.ts';
import type { Env } from '../../config/setting.ts';
import type { GatewayFile } from '../../gateway/configuration/gateway-file.ts';
import { openForCommand } from '../../gateway/open-upstream.ts';
import { isOwnToken } from '../../http/endpoint/bearer.ts';
import { getOriginalToken, readEmail, type UserContext } from '../../http/endpoint/message.ts';
import { openProviderMetadata } from '../../http/oauth-client/provider-metadata.ts';
import { readUnverifiedClaims } from '../../http/oauth-client/token-answer.ts';
import type { ClientCapabilities } from '../../mcp/catalog/client-requests.ts';
import type { Upstream } from '../../mcp/upstream/upstream.ts';
import type { UpstreamConfig } from '../../mcp/upstream/upstream-config.ts';
import { systemClock } from '../../platform/clock.ts';
import { generateSecret } from '../../platform/ids.ts';
import { isStringArray } from '../../platform/json.ts';
import { createLog, type Log } from '../../platform/log.ts';
import { openOutboundNetwork } from '../../platform/outbound/outbound-network.ts';
import { leaveOutNextStart } from '../../servers/stdio/stdio-upstream.ts';
import { findAuthProblems, findServerCredentials } from '../../servers/transport/transports.ts';
import { DataDirInUse } from '../../store/embedded/lock.ts';
import { openEmbeddedStore } from '../../store/embedded/open.ts';
import { openStore } from '../../store/open.ts';
import { createSeal } from '../../store/seal/seal.ts';
import { createLoginSeal, createReplicaSeal } from '../../store/seal/secrets.ts';
import { CommandError, UsageError } from '../command-line/errors.ts';
import type { InvokedProcess } from '../command-line/invocation.ts';
import { stayAlive } from '../command-line/process-end.ts';
import { showSpinner } from '../command-line/terminal.ts';
import { findProgramUserProblems } from './program-users.ts';
import { loadSettings } from './read-setup.ts';

const clock = systemClock;

/** Logs why a server is not available, and its last output. A command ends before a server is restarted. */
export function createStderrLog({ stderr }: InvokedProcess): Log {
  const lines = createLog('warn', {
    format: stderr.isTTY ? 'text' : 'json',
    destination: { write: (line) => void stderr.write(line) },
  });
  return { ...lines, warn: (message, facts) => lines.warn(leaveOutNextStart(message), facts) };
}

/** @throws CommandError, ConfigError or DataDirError */
export async function openServers({ servers }: GatewayFile, env: Env, log: Log) {
  const config = loadSettings(env, servers);
  const problems = config.auth.required ? findAuthProblems(servers, config) : [];
  if (problems.length > 0)
    throw new CommandError('The settings do not fit the servers:', ...problems.map(formatProblem));
  const userProblems = await findProgramUserProblems(servers);
  if (userProblems.length > 0)
    throw new CommandError('The programs cannot be started:', ...userProblems.map(formatProblem));
  const { store, getSeal, close } = await openRecords(config, servers, log);
  const outbound = openOutboundNetwork({ outbound: config.outbound });
  const { fetch } = outbound;
  const provider = config.auth.required ? config.auth.provider : undefined;
  const { runtime, openUpstream } = openForCommand(
    { config, clock, log, fetch, store, getSeal },
    {
      getProviderToken: getOriginalToken,
      metadata: provider && openProviderMetadata({ fetch, clock, log }, provider),
      connections: undefined,
    },
    env,
  );
  return {
    runtime,
    openUpstream,
    async close() {
      outbound.close();
      await close();
    },
  };
}

/** The gateway's own store if its keys are needed; otherwise a temporary one, for sessions with servers. */
async function openRecords(config: Config, servers: readonly UpstreamConfig[], log: Log) {
  const names = servers
    .filter((server) => findServerCredentials(server)?.signsTokens)
    .map(({ name }) => name);
  if (names.length === 0) {
    const dataDir = await mkdtemp(join(tmpdir(), 'postern-lock-'));
    const sessionKeyPrefix = 'mcp:session:';
    const temporary = await openEmbeddedStore({ dataDir, sessionKeyPrefix, clock, log });
    const seal = createSeal([generateSecret()]);
    return {
      store: temporary,
      getSeal: async () => seal,
      async close() {
        await temporary.close();
        await rm(dataDir, { recursive: true, force: true });
      },
    };
  }
  const store = await openStore(config, { clock, log }).catch((error: unknown) => {
    if (!(error instanceof DataDirInUse)) throw error;
    throw new CommandError(
      'The keys for servers with identity cannot be read:',
      `The data folder ${config.store.dataDir} (DATA_DIR) is in use by a running gateway. It has the keys with which ${names.join(', ')} ("auth": "identity") would verify the caller. Stop the gateway, run postern lock again, and start it. With Redis (REDIS_URL) the gateway can keep running.`,
    );
  });
  const loginSeal = await createLoginSeal(config.oauth.stateSecret);
  return {
    store,
    getSeal: createReplicaSeal(config.mcp.sessions.keyPrefix, { store, clock }, loginSeal),
    close: store.close,
  };
}

/** A time limit for requests to servers: after `ms`, `signal` aborts them and `tooLate` rejects, whether or not they end. */
export function createTimeLimit(ms: number) {
  const signal = AbortSignal.timeout(ms);
  const tooLate = new Promise<never>((_, reject) => {
    const late = new Error(`it did not answer within ${ms / 1000} s`);
    signal.addEventListener('abort', () => reject(late), { once: true });
  });
  return { signal, tooLate };
}

/**
 * Queries all servers at the same time, with a spinner. `openOne` opens a server for `read`, which has to finish within `limitMs`;
 * then the server is closed.
 */
export async function askServers<Result>(
  file: GatewayFile,
  process: InvokedProcess,
  limitMs: number,
  ask: (config: UpstreamConfig, openOne: AskOne, log: Log) => Promise<Result>,
): Promise<readonly Result[]> {
  const log = createStderrLog(process);
  const { openUpstream, close } = await openServers(file, process.env, log);
  const endSpinner = showSpinner('Asking', process);
  const openOne: AskOne = async (config, read) => {
    const upstream = openUpstream(config);
    const { signal, tooLate } = createTimeLimit(limitMs);
    try {
      return await Promise.race([read(upstream, signal), tooLate]);
    } finally {
      await upstream.close(0);
    }
  };
  try {
    return await stayAlive(Promise.all(file.servers.map((config) => ask(config, openOne, log))));
  } finally {
    endSpinner();
    await close();
  }
}

type AskOne = <Read>(
  config: UpstreamConfig,
  read: (upstream: Upstream, signal: AbortSignal) => Promise<Read>,
) => Promise<Read>;

/** A client with all capabilities: some programs list tools only for those. */
export const EVERY_CAPABILITY: ClientCapabilities = {
  elicitation: true,
  elicitationUrl: true,
  sampling: true,
  roots: true,
};

// --token, --token-file: the user on whose behalf servers are queried.

const OPAQUE_TOKENS =
  'If its access tokens are not JWTs, see "Servers that only answer users" in docs/upstreams.md.';

/**
 * Trusts the claims without verification: the holder of the token only reads what its user may read, and no access is granted.
 *
 * @throws UsageError if it is not a user's token from a provider, or has expired.
 */
export function readTokenUser(token: string, now: number): UserContext {
  if (isOwnToken(token))
    throw new UsageError(
      `The token was issued by the gateway (pst_…). It does not identify its user, and no server may get it. Get an access token from the identity provider itself. ${OPAQUE_TOKENS}`,
    );
  const claims = readUnverifiedClaims(token);
  const { sub, exp, groups } = claims ?? {};
  if (claims === undefined || typeof sub !== 'string' || sub === '')
    throw new UsageError(
      `The token is not a JWT with a "sub". Pass an access token that the identity provider issued to a user. ${OPAQUE_TOKENS}`,
    );
  if (typeof exp === 'number' && exp * 1000 <= now)
    throw new UsageError('The token has expired. Pass a valid access token.');
  return { sub, claims, token, ...readEmail(claims), ...(isStringArray(groups) && { groups }) };
}
