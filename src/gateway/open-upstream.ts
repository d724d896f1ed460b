// The way to a server behind the gateway: its transport, and what it learns of the caller.

import type { ConnectionParts } from '../mcp/upstream/connections.ts';
import type { Upstream, UpstreamRuntime } from '../mcp/upstream/upstream.ts';
import type { UpstreamConfig } from '../mcp/upstream/upstream-config.ts';
import { withholdRoots } from '../mcp/upstream/wrap-upstream.ts';
import type { CallerTokens } from '../servers/credentials/credential-type.ts';
import { type Credentials, openCredentials } from '../servers/credentials/credentials.ts';
import { bindConnections } from '../servers/doors/bind-connections.ts';
import { createConnectionTokens, createLogins } from '../servers/doors/logins.ts';
import { createHttpUpstream } from '../servers/http/http-upstream.ts';
import { findInheritedFiles, type ProgramHost } from '../servers/stdio/program.ts';
import { createStdioUpstream } from '../servers/stdio/stdio-upstream.ts';
import { openProcessShare } from '../servers/transport/process-share.ts';
import { noMetrics } from '../telemetry/metrics/metrics.ts';

/** The process that reaches the servers. */
interface ReachingProcess extends Omit<ProgramHost, 'inheritedFiles'> {
  /** False for a command, which is none of several replicas. */
  readonly serves: boolean;
}

/** Sources of the tokens of callers. */
export interface UpstreamCallers extends Omit<CallerTokens, 'connections'> {
  /** Undefined where nobody can connect: without OAUTH_MODE=broker, and in commands. */
  readonly connections: ConnectionParts | undefined;
}

export interface UpstreamOpener {
  /** Nothing has to be reachable. */
  openUpstream(config: UpstreamConfig): Upstream<UpstreamConfig>;
  /** Tell servers who calls. */
  readonly credentials: Credentials;
}

export function createUpstreamOpener(
  runtime: UpstreamRuntime,
  callers: UpstreamCallers,
  { serves, ...host }: ReachingProcess,
): UpstreamOpener {
  const share = openProcessShare(runtime, serves);
  const inheritedFiles = findInheritedFiles();
  const { getProviderToken, metadata, connections } = callers;
  const credentials = openCredentials(runtime, {
    getProviderToken,
    metadata,
    connections: connections && createConnectionTokens(connections),
  });

  return {
    credentials,
    openUpstream(server) {
      const opened = withholdRoots(open(server), runtime.log);
      if (server.kind !== 'http' || server.auth.type !== 'oauth') return opened;
      const { name, url, auth } = server;
      return bindConnections(opened, createLogins({ name, url, auth }, connections));
    },
  };

  function open(server: UpstreamConfig): Upstream<UpstreamConfig> {
    if (server.kind === 'stdio')
      return createStdioUpstream(runtime, server, share, { ...host, inheritedFiles });
    const access = {
      getHeaders: credentials.createGetHeaders(server),
      noteRefusal: credentials.createNoteRefusal(server),
    };
    return createHttpUpstream(runtime, server, access, share);
  }
}

/** For a command, which asks servers and serves nobody: nothing is counted. */
export function openForCommand(
  given: Omit<UpstreamRuntime, 'metrics'>,
  callers: UpstreamCallers,
  environment: ProgramHost['environment'],
) {
  const runtime: UpstreamRuntime = { ...given, metrics: noMetrics };
  const { openUpstream } = createUpstreamOpener(runtime, callers, { serves: false, environment });
  return { runtime, openUpstream };
}
