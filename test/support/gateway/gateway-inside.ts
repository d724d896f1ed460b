// The gateway as `postern start` opens it, within the process of its test: for tests of what talks to it.
import { createGateway } from '../../../src/gateway/gateway.ts';
import { loadConfig } from '../../../src/index.ts';
import { closeAfterTest } from '../lifetimes.ts';
import { createTemporaryFolder } from '../temporary-folder.ts';
import { collectLog } from './log.ts';
import { freePort } from './ports.ts';
import type { Env } from './process.ts';

export interface GatewayInside {
  readonly port: number;
  /** By address: where `localhost` leads is not the matter here. */
  readonly url: string;
  readonly dataDir: string;
  close(): Promise<void>;
}

/** On a free port of loopback, or the given one. It is closed once the test has ended, at the latest. */
export async function startInside(env: Env = {}): Promise<GatewayInside> {
  const folder = closeAfterTest(await createTemporaryFolder());
  const port = env.PORT === undefined ? await freePort() : Number(env.PORT);
  const dataDir = env.DATA_DIR ?? folder.path;
  const own = { HOST: '127.0.0.1', PORT: String(port), DATA_DIR: dataDir };
  const gateway = await createGateway(loadConfig({ ...own, ...env }), { log: collectLog().log });
  let closing: Promise<void> | undefined;
  const close = () => {
    closing ??= gateway.close();
    return closing;
  };
  closeAfterTest({ close });
  await gateway.listen();
  return { port, url: `http://127.0.0.1:${port}`, dataDir, close };
}
