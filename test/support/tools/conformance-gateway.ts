// A gateway as the official conformance tool wants it: its catalogue, and no token.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describeListenError, StartError } from '../../../src/cli/command-line/errors.ts';
import { createGateway, type Deps, loadConfig } from '../../../src/index.ts';
import { conformanceCatalog } from '../catalogs/conformance/index.ts';

export interface ConformanceGateway {
  readonly mcpUrl: string;
  close(): Promise<void>;
}

type Env = Readonly<Record<string, string | undefined>>;

/** What is otherwise than in a service; a variable of the caller's own wins. */
const DEFAULTS: Env = {
  HOST: '127.0.0.1',
  AUTH_REQUIRED: 'false',
  RATE_LIMIT_ENABLED: 'false',
  MCP_STREAMS: 'true',
  LOG_LEVEL: 'error',
};

/**
 * Serves the catalogue that the tool expects, unless `deps` has another, and listens as `env` says (PORT, BASE_URL, REDIS_URL …). The embedded store lies in a folder of its
 * own, removed at the end.
 *
 * @throws ConfigError for settings that are not right, StartError when it cannot listen.
 */
export async function startConformanceGateway(
  env: Env,
  deps: Partial<Deps> = { catalog: conformanceCatalog },
): Promise<ConformanceGateway> {
  const given = Object.fromEntries(Object.entries(env).filter(([, value]) => value));
  const dataDir = await mkdtemp(join(tmpdir(), 'postern-conformance-data-'));
  const removeData = () => rm(dataDir, { recursive: true, force: true });
  try {
    const config = loadConfig({ ...DEFAULTS, ...given, DATA_DIR: dataDir });
    const gateway = await createGateway(config, deps);
    const close = () => gateway.close().finally(removeData);
    try {
      await gateway.listen();
    } catch (error) {
      await close();
      throw new StartError(describeListenError(error, config.server));
    }
    return { mcpUrl: `${config.server.baseUrl}/mcp`, close };
  } catch (error) {
    await removeData();
    throw error;
  }
}
