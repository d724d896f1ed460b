// Where the time of a call goes that is passed on, at each size, beside that of the floor: what is left, and why.

import { describeMachine } from '../machine.ts';
import type { Options } from '../options.ts';
import { printProfile, profileServer } from '../profile.ts';
import { publish, type RelayProfile } from '../published.ts';
import { openTestbed } from '../testbed.ts';
import { FLOOR, listContestants, startContestant, TOOLS } from './contestants.ts';
import { RELAY_SIZES } from './measure-table.ts';
import { startUpstream } from './upstreams.ts';

const PROFILED: readonly string[] = [FLOOR, 'embedded', 'redis'];

export async function measureRelayProfile({ isPublished }: Options): Promise<void> {
  const machine = describeMachine();
  const contestants = listContestants().filter(({ name }) => PROFILED.includes(name));
  const testbed = await openTestbed(contestants);
  const upstream = await startUpstream('session', TOOLS);
  try {
    const results: RelayProfile[] = [];
    for (const [at, { name: size, work }] of RELAY_SIZES.entries()) {
      for (const contestant of contestants) {
        const { name, label, era } = contestant;
        const parts = await profileServer({
          folder: testbed.folder,
          name: `${at}-${name}`,
          start: (nodeOptions) => startContestant(testbed, contestant, upstream.url, nodeOptions),
          createCall: (server) => testbed.createCall(server, era, work),
        });
        results.push({ size, contestant: name, parts });
        printProfile(`${size}, ${label}`, parts);
      }
    }
    if (isPublished) publish({ relayProfile: { machine, results } });
  } finally {
    await upstream.stop();
    await testbed.close();
  }
}
