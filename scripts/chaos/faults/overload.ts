// More calls than the gateway can answer.

import { writeFileIn } from '../../../test/support/catalogs/catalog-files.ts';
import { makeFolder } from '../../../test/support/gateway/process.ts';
import { startRedis } from '../../../test/support/stores/redis.ts';
import { createTally } from '../client/tally.ts';
import { checkAtLeast, checkAtMost, checkFact, type Fault } from '../fault.ts';

/** The CPU time of a call: so few fit into a second that a client can send three times as many. */
const CALL_MS = 3;
const CLOSED_LOOPS = 32;

/** The tool that the client knows, working. */
const CATALOG = `
import { createLocalCatalog, defineTool } from 'postern/define';

export default createLocalCatalog({
  tools: [
    defineTool({
      name: 'service_ping',
      description: 'Works for ${CALL_MS} ms, then says what it was told.',
      inputSchema: { type: 'object', properties: { message: { type: 'string' } } },
      run({ message }) {
        for (const end = performance.now() + ${CALL_MS}; performance.now() < end; );
        return { content: [{ type: 'text', text: 'Busy: ' + message }] };
      },
    }),
  ],
});
`;

const threefold: Fault = {
  name: 'overload',
  title: 'Three times as many calls as fit.',
  figure:
    'Good answers ≥ 80 % of the peak, the rest refused with 503 and Retry-After; no outage in the log.',
  async run(stage) {
    const redis = stage.closeAtEnd(await startRedis());
    const issuer = await stage.startIssuer();
    const folder = await makeFolder();
    const catalog = await writeFileIn(folder, 'catalog.mjs', CATALOG);
    const gateway = await stage.startGateway(
      issuer,
      { REDIS_URL: redis.url },
      { args: ['start', '--catalog', catalog], cwd: folder },
    );
    const seconds = stage.choose({ full: 20, short: 1 });
    const whole = createTally();
    const options = { connections: 500, sessions: 20 };

    const calm = await stage.startClient(gateway.url, issuer, {
      ...options,
      tally: createTally(whole),
    });
    const start = performance.now();
    await Promise.all(
      Array.from({ length: CLOSED_LOOPS }, async () => {
        while (performance.now() - start < seconds * 1000) await calm.ping();
      }),
    );
    const peak = calm.tally.count('good') / seconds;

    const pressed = await stage.startClient(gateway.url, issuer, {
      ...options,
      tally: createTally(whole),
    });
    pressed.allow('overload');
    const goodBefore = pressed.tally.count('good');
    const load = stage.startLoad(3 * peak, pressed.ping);
    await stage.pause(seconds * 1000);
    const good = (pressed.tally.count('good') - goodBefore) / seconds;
    await load.stop();
    await pressed.checkSessions();
    return {
      tally: whole,
      checks: [
        checkAtLeast('good answers, of the peak', (good / peak) * 100, 80, '%'),
        checkAtMost('median of the refusals', pressed.tally.percentile(0.5, 'refused') || 0, 1000),
        // Those of the first seconds wait until their new connections are accepted.
        checkAtMost('p99 of the refusals', pressed.tally.percentile(0.99, 'refused') || 0, 5000),
        checkAtMost('p99 of good answers', pressed.tally.percentile(0.99, 'good'), 5000),
        checkFact('no outage in the log', !gateway.stdout.includes('The store does not answer')),
        checkFact('the process still runs', !gateway.hasEnded),
      ],
    };
  },
};

export const overloadFaults: readonly Fault[] = [threefold];
