// The MCP servers of the configuration file, asked as the gateway asks them.
import type { UpstreamConfig } from '../../../core/gateway-file/gateway-file.ts';
import { describeCause } from '../../../core/log.ts';
import { fetchList } from '../../../features/upstreams/catalog/fetch-list.ts';
import { needsUser } from '../../../features/upstreams/credentials/needs-user.ts';
import {
  GATEWAY_CALLER,
  type Upstream,
  type UpstreamCaller,
} from '../../../features/upstreams/upstream.ts';
import { openServers } from '../../lock/open-servers.ts';
import { readUser } from '../../lock/read-user.ts';
import { type Finding, failure, ok, unknown, warning } from '../finding.ts';
import type { SettingsAtHand } from './settings-at-hand.ts';

const CHECK = 'server';
/** A first `npx` downloads. */
const TIME_LIMIT_MS = 60_000;

export async function checkServers({
  setup,
  token,
  clock,
  log,
}: SettingsAtHand): Promise<readonly Finding[]> {
  if (setup === undefined || setup.file.servers.length === 0) return [];
  const user = token === undefined ? undefined : readUser(token, clock.now());
  const caller: UpstreamCaller = user === undefined ? GATEWAY_CALLER : { ...GATEWAY_CALLER, user };
  const servers = await openServers(setup.file, log);
  try {
    return await Promise.all(
      setup.file.servers.map((config) =>
        needsUser(config) && user === undefined
          ? unknown(CHECK, `whether ${config.name} can be used: it answers users only.`, {
              remedy: 'give an access token of a user: --token "$TOKEN".',
            })
          : checkServer(servers.openUpstream(config), caller, config),
      ),
    );
  } finally {
    await servers.close();
  }
}

async function checkServer(
  upstream: Upstream,
  caller: UpstreamCaller,
  config: UpstreamConfig,
): Promise<Finding> {
  const { name } = config;
  const limit = AbortSignal.timeout(TIME_LIMIT_MS);
  const tooLate = new Promise<never>((_, reject) => {
    const late = new Error(`it did not answer within ${TIME_LIMIT_MS / 1000} s`);
    limit.addEventListener('abort', () => reject(late), { once: true });
  });
  try {
    const { items } = await Promise.race([fetchList(upstream, 'tools', caller, limit), tooLate]);
    return items.length === 0
      ? warning(CHECK, `${name} answers, and has no tools.`)
      : ok(
          CHECK,
          `${name} answers, and has ${items.length} ${items.length === 1 ? 'tool' : 'tools'}.`,
        );
  } catch (error) {
    return failure(CHECK, `${name} cannot be used: ${describeCause(error)}.`, {
      setting: 'POSTERN_CONFIG',
      remedy:
        config.kind === 'stdio'
          ? `check the command, its arguments and its environment: ${config.command}.`
          : `check its url, its credentials and that it runs: ${new URL(config.url).origin}.`,
    });
  } finally {
    await upstream.close(0);
  }
}
