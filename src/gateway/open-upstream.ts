// Opens servers behind the gateway: transport, credentials and connections.

import type { ConnectionPorts } from '../mcp/upstream/connections.ts';
import type { Upstream, UpstreamRuntime } from '../mcp/upstream/upstream.ts';
import type { UpstreamConfig } from '../mcp/upstream/upstream-config.ts';
import { withholdRoots } from '../mcp/upstream/wrap-upstream.ts';
import type { CallerTokens } from '../servers/credentials/credential-type.ts';
import { openCredentials } from '../servers/credentials/credentials.ts';
import { bindConnections } from '../servers/doors/doors.ts';
import { createConnectionTokens, createLogins } from '../servers/doors/logins.ts';
import { findInheritedFiles, type ProgramHost } from '../servers/stdio/program.ts';
import { openProcessShare } from '../servers/transport/process-share.ts';
import { findTransport } from '../servers/transport/transports.ts';
import { noMetrics } from '../telemetry/metrics/metrics.ts';

/** Sources of callers' tokens. */
export interface UpstreamCallers extends Omit<CallerTokens, 'connections'> {
  /** Undefined if users cannot connect: without OAUTH_MODE=broker, and in commands. */
  readonly connections: ConnectionPorts | undefined;
}

/** `serves` is false for a command, which is not a replica. `host` starts the programs of servers. */
export function createUpstreamOpener(
  runtime: UpstreamRuntime,
  callers: UpstreamCallers,
  serves: boolean,
  host: Omit<ProgramHost, 'inheritedFiles'>,
) {
  const { getProviderToken, metadata, connections } = callers;
  const credentials = openCredentials(runtime, {
    getProviderToken,
    metadata,
    connections: connections && createConnectionTokens(connections),
  });

  const reach = {
    share: openProcessShare(runtime, serves),
    credentials,
    host: { ...host, inheritedFiles: findInheritedFiles() },
  };

  return {
    /** Credentials that identify callers to servers. */
    credentials,
    /** The server does not have to be reachable. */
    openUpstream(server: UpstreamConfig): Upstream {
      const transport = findTransport(server);
      const opened = withholdRoots(transport.open(runtime, server, reach), runtime.log);
      const { connection } = opened.facts;
      return connection === undefined
        ? opened
        : bindConnections(opened, createLogins(connection, connections));
    },
  };
}

/** For a command, which sends requests to servers but serves no clients, so there are no metrics. */
export function openForCommand(
  given: Omit<UpstreamRuntime, 'metrics'>,
  callers: UpstreamCallers,
  environment: ProgramHost['environment'],
) {
  const runtime: UpstreamRuntime = { ...given, metrics: noMetrics };
  const { openUpstream } = createUpstreamOpener(runtime, callers, false, { environment });
  return { runtime, openUpstream };
}
