// npm run bench -- profile: where the CPU time of a call goes.
import { selectContestants } from './contestants.ts';
import { describeMachine } from './machine.ts';
import type { Options } from './options.ts';
import { type ProfileResult, printProfile, profileServer } from './profile.ts';
import { publish } from './published.ts';
import { openTestbed } from './testbed.ts';

const DEFAULT = ['redis-session', 'embedded-session'];

export async function measureProfile({ only, isPublished }: Options): Promise<void> {
  const contestants = selectContestants(only.length === 0 ? DEFAULT : only);
  const machine = describeMachine();
  const testbed = await openTestbed(contestants);
  try {
    const results: ProfileResult[] = [];
    for (const { name, label, command, era } of contestants) {
      const parts = await profileServer({
        folder: testbed.folder,
        name,
        start: (nodeOptions) => testbed.start(command, { nodeOptions }),
        createCall: (server) => testbed.createCall(server, era),
      });
      results.push({ contestant: name, parts });
      printProfile(label, parts);
    }
    if (isPublished) publish({ profile: { machine, results } });
  } finally {
    await testbed.close();
  }
}
