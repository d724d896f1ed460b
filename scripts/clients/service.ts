// The gateway in broker mode, the development provider behind it, a recorder before it.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { builtInCatalog } from '../../src/built-in/index.ts';
import { loadConfig } from '../../src/config/load.ts';
import { createGateway } from '../../src/gateway/gateway.ts';
import { createLog } from '../../src/platform/log.ts';
import { freePort } from '../../test/support/gateway/ports.ts';
import { startProvider } from '../../test/support/oauth/provider.ts';
import { type Exchange, startRecorder } from './recorder.ts';

export interface TrialService {
  readonly mcpUrl: string;
  readonly accessTokenTtlSeconds: number;
  readonly exchanges: readonly Exchange[];
  /** The gateway ends and starts again on the same store; provider and address stay. */
  restart(): Promise<void>;
  close(): Promise<void>;
}

export async function startTrialService(accessTokenTtlSeconds: number): Promise<TrialService> {
  const [port, inner] = [await freePort(), await freePort()];
  const baseUrl = `http://localhost:${port}`;
  const provider = await startProvider({ gatewayUrl: baseUrl, accessTokenTtlSeconds });
  const dataDir = await mkdtemp(join(tmpdir(), 'postern-clients-store-'));
  const recorder = await startRecorder(port, inner);
  const config = loadConfig({
    ...provider.env,
    HOST: '127.0.0.1',
    PORT: String(inner),
    BASE_URL: baseUrl,
    DATA_DIR: dataDir,
    OAUTH_MODE: 'broker',
    OIDC_CLOCK_TOLERANCE_SECONDS: '0',
    // Clients register: that works without the internet, too.
    CIMD_ALLOWED_HOSTS: 'none',
    LOG_LEVEL: 'error',
  });
  const log = createLog('error', {
    destination: { write: (line: string) => void process.stderr.write(line) },
  });
  async function open() {
    const gateway = await createGateway(config, { log, catalog: builtInCatalog });
    await gateway.listen();
    return gateway;
  }
  let gateway = await open();

  return {
    mcpUrl: `${baseUrl}/mcp`,
    accessTokenTtlSeconds,
    exchanges: recorder.exchanges,
    async restart() {
      await gateway.close();
      gateway = await open();
    },
    async close() {
      recorder.close();
      await gateway.close();
      await provider.close();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}
