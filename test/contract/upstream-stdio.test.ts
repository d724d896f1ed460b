import { join } from 'node:path';
import { build } from 'esbuild';
import type { StdioUpstreamConfig } from '../../src/servers/stdio/stdio-config.ts';
import { useShared } from '../support/lifetimes.ts';
import { createTemporaryFolder } from '../support/temporary-folder.ts';
import { openStdio } from '../support/upstreams/stdio.ts';
import { supportFile } from '../support/upstreams/stdio-calls.ts';
import { describeUpstream, type UpstreamHarness } from './upstream.contract.ts';

const REQUIRE =
  "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);";

type Server = 'contract-server-1' | 'contract-server-2';

/** Every test starts a server. As one file, with its packages in it, it starts in a fifth of the time. */
const servers = useShared(async () => {
  const folder = await createTemporaryFolder();
  await build({
    entryPoints: ['contract-server-1.ts', 'contract-server-2.ts'].map(supportFile),
    outdir: folder.path,
    outExtension: { '.js': '.mjs' },
    bundle: true,
    platform: 'node',
    format: 'esm',
    // Some of what the official packages depend on is CommonJS.
    banner: { js: REQUIRE },
  });
  return folder;
});

const openTo =
  (server: Server, isolation: StdioUpstreamConfig['isolation']) =>
  async (timeoutMs: number): Promise<UpstreamHarness> => {
    const args = [join(servers.path, `${server}.mjs`)];
    const { upstream } = openStdio({ command: process.execPath, args, isolation, timeoutMs });
    return { upstream, close: () => upstream.close(0) };
  };

describeUpstream(
  'stdio with sessions, shared',
  { era: 'session', canAsk: false },
  openTo('contract-server-1', 'shared'),
);
describeUpstream(
  'stdio with sessions, one process for each user',
  { era: 'session', canAsk: true },
  openTo('contract-server-1', 'user'),
);
describeUpstream(
  'stdio without sessions, shared',
  { era: 'stateless', canAsk: false },
  openTo('contract-server-2', 'shared'),
);
describeUpstream(
  'stdio without sessions, one process for each session',
  { era: 'stateless', canAsk: true },
  openTo('contract-server-2', 'session'),
);
