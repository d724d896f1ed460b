// A gateway on a loopback socket in front of an emulated provider.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadConfig } from '../../../src/config/load.ts';
import { createGateway, type Deps } from '../../../src/gateway/gateway.ts';
import { freePort } from '../gateway/ports.ts';
import { GENEROUS } from '../gateway/service.ts';
import type { Emulator } from './emulator.ts';

export interface GatewayInFront {
  readonly baseUrl: string;
  readonly mcpUrl: URL;
  close(): Promise<void>;
}

export interface GatewayInFrontOptions {
  readonly emulator: Pick<Emulator, 'env'>;
  readonly deps: Partial<Deps>;
  /** A free one unless given. */
  readonly port?: number;
  readonly env?: Readonly<Record<string, string>>;
}

export async function startGatewayInFront({
  emulator,
  deps,
  port: given,
  env = {},
}: GatewayInFrontOptions): Promise<GatewayInFront> {
  const port = given ?? (await freePort());
  const baseUrl = `http://localhost:${port}`;
  const dataDir = await mkdtemp(join(tmpdir(), 'postern-provider-'));
  const removeData = () => rm(dataDir, { recursive: true, force: true });
  try {
    const config = loadConfig({
      BASE_URL: baseUrl,
      HOST: '127.0.0.1',
      PORT: String(port),
      DATA_DIR: dataDir,
      ...GENEROUS,
      OAUTH_TOKEN_RATE_LIMIT_MAX: '1000',
      ...emulator.env,
      ...env,
    });
    const gateway = await createGateway(config, deps);
    await gateway.listen();
    return {
      baseUrl,
      mcpUrl: new URL(`${baseUrl}/mcp`),
      async close() {
        await gateway.close();
        await removeData();
      },
    };
  } catch (error) {
    await removeData();
    throw error;
  }
}
