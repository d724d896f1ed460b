// Where the time of a call goes that is passed on, at each size, beside that of the floor: what is left, and why.

import { describeMachine } from '../machine.ts';
import type { Options } from '../options.ts';
import { printProfile, profileServer } from '../profile.ts';
import { publish, type RelayProfile } from '../published.ts';
import { openTestbed } from '../testbed.ts';
import { FLOOR, listContestants, startContestant } from './contestants.ts';
import { startUpstream } from './upstreams.ts';
import { ERAS, listSizes, TOOLS } from './ways.ts';

const PROFILED: readonly string[] = [FLOOR, 'embedded', 'redis'];

export async function measureRelayProfile({ isPublished }: Options): Promise<void> {
  const machine = describeMachine();
  const testbed = await openTestbed();
  const results: RelayProfile[] = [];
  try {
    for (const way of ERAS) {
      const contestants = listContestants(way).filter(({ name }) => PROFILED.includes(name));
      const upstream = await startUpstream(way, TOOLS);
      for (const [at, { name: size, work }] of listSizes(way).entries()) {
        for (const contestant of contestants) {
          const { name, label, era } = contestant;
          const parts = await profileServer({
            folder: testbed.folder,
            name: `${way}-${at}-${name}`,
            start: (nodeOptions) => startContestant(testbed, contestant, upstream.url, nodeOptions),
            createCall: (server) => testbed.createCall(server, era, work),
          });
          results.push({ size: `${size}, ${way}`, contestant: name, parts });
          printProfile(`${size}, ${way}, ${label}`, parts);
        }
      }
      await upstream.stop();
    }
    if (isPublished) publish({ relayProfile: { machine, results } });
  } finally {
    await testbed.close();
  }
}
