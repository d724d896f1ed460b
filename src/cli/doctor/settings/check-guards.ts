// The guards of the configuration file, each asked once, about a message in which there is nothing.

import { ConfigError } from '../../../config/problem.ts';
import { tryGuards } from '../../../gateway/guard-servers.ts';
import { openServers } from '../../setup/open-servers.ts';
import { type Found, failure, ok } from '../finding.ts';
import { createCollectingLog } from '../instruments.ts';
import type { SettingsAtHand } from './settings-at-hand.ts';

const CHECK = 'guard';

export async function checkGuards({ setup, env }: SettingsAtHand): Promise<Found> {
  if (setup?.file.guards === undefined) return undefined;
  const { log } = createCollectingLog();
  const servers = await openServers(setup.file, { env, log });
  try {
    const tried = await tryGuards(servers.runtime, setup.file, servers.openUpstream);
    return tried.map(({ name, kind, onError, problem }) => {
      if (problem === undefined) return ok(CHECK, `The guard ${name} (${kind}) answers.`);
      return failure(CHECK, {
        what: `The guard ${name} (${kind}) has failed: ${problem}.`,
        why:
          onError === 'refuse'
            ? 'What it should look at is refused.'
            : 'What it should look at passes ("onError": "pass").',
        setting: 'POSTERN_CONFIG',
        remedy: 'check that it runs, and what the configuration file says of it under "guards".',
      });
    });
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return error.problems.map((what) => failure(CHECK, { what, setting: 'POSTERN_CONFIG' }));
  } finally {
    await servers.close();
  }
}
