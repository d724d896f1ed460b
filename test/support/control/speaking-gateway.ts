// A gateway behind which all that is said is marked: built in, over HTTP in both eras, and on stdio.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { writeGuard } from '../guards/module-guard.ts';
import { startSpeakingServer } from '../guards/speaking-server.ts';
import { closeAfterTest } from '../lifetimes.ts';
import { createTemporaryFolder } from '../temporary-folder.ts';
import { type CatalogGateway, startForTest } from '../upstreams/catalog-gateway.ts';
import { buildTool, serveForTest } from '../upstreams/listing-server.ts';
import { type Control, VIEWS } from './controls.ts';
import { createSpeakingCatalog } from './speaking-catalog.ts';
import { startSpeakingStateless } from './speaking-stateless.ts';

export interface Speaking {
  readonly gateway: CatalogGateway;
  /** All that servers and the built-in catalogue heard so far. */
  heard(): string;
  /** Loads the configuration anew, with another control. */
  change(control: Control): Promise<void>;
}

const REFUSE = "return { decision: 'refuse', message: 'No.' };";

/** Closed after the test. */
export async function startSpeakingGateway(control: Control): Promise<Speaking> {
  const folder = closeAfterTest(await createTemporaryFolder());
  const localPath = join(folder.path, 'heard');
  writeFileSync(localPath, '');
  const it = closeAfterTest(await startSpeakingServer());
  const now = closeAfterTest(await startSpeakingStateless());
  const quiet = await serveForTest({ tools: [buildTool('say')] });
  const heardByOwn: string[] = [];
  const program = fileURLToPath(new URL('speaking-stdio.mjs', import.meta.url));
  async function toFile({ file = {}, guard }: Control): Promise<object> {
    const guards = guard && [
      { name: 'all', on: guard.on, use: await writeGuard(guard.body ?? REFUSE) },
    ];
    return {
      mcpServers: {
        it: it.url,
        local: { command: process.execPath, args: [program, localPath], isolation: 'user' },
        now: now.url,
        quiet: quiet.url,
      },
      views: VIEWS,
      ...(guards && { guards }),
      ...file,
    };
  }

  const gateway = await startForTest({
    file: await toFile(control),
    ...(control.lock && { lock: control.lock }),
    builtIn: createSpeakingCatalog(heardByOwn),
    env: { MCP_STREAMS: 'true' },
  });
  return {
    gateway,
    heard: () =>
      [...it.heard, ...now.heard, ...heardByOwn, readFileSync(localPath, 'utf8')].join('\n'),
    change: async (next) => gateway.reload(await toFile(next), next.lock),
  };
}
