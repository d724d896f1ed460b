import { openHttpUpstream } from '../support/upstreams/http-upstream.ts';
import { startSdk1Http } from '../support/upstreams/sdk-1-http.ts';
import { startSdk1Sse } from '../support/upstreams/sdk-1-sse.ts';
import { startSdk2Http } from '../support/upstreams/sdk-2-http.ts';
import { describeUpstream, type UpstreamHarness } from './upstream.contract.ts';

const openTo =
  (
    start: () => Promise<{ readonly url: string; close(): Promise<void> }>,
    transport: 'streamable-http' | 'sse' = 'streamable-http',
  ) =>
  async (timeoutMs: number): Promise<UpstreamHarness> => {
    const server = await start();
    const { upstream, close } = await openHttpUpstream({ url: server.url, transport, timeoutMs });
    return {
      upstream,
      async close() {
        await close();
        await server.close();
      },
    };
  };

describeUpstream('HTTP with sessions', { era: 'session', canAsk: true }, openTo(startSdk1Http));
describeUpstream(
  'HTTP without sessions',
  { era: 'stateless', canAsk: true },
  openTo(startSdk2Http),
);
describeUpstream(
  'HTTP+SSE of 2024-11-05',
  { era: 'session', canAsk: true },
  openTo(startSdk1Sse, 'sse'),
);
