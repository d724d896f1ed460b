// A gateway whose settings are at hand. Where it runs already, it is asked, too.
import { type Finding, unknown } from './finding.ts';
import type { Instruments } from './instruments.ts';
import type { UsableSettings } from './read-settings.ts';
import { hasFailure } from './render.ts';
import { type Report, runChecks } from './run-checks.ts';
import { openSettingsAtHand, type SettingsAtHand } from './settings/settings-at-hand.ts';
import {
  ABSENT_GATEWAY_CHECKS,
  SETTINGS_CHECKS,
  STORE_CHECKS,
} from './settings/settings-checks.ts';
import { createWalk, type Walk } from './walk/walk.ts';
import { CLIENT_CHECKS, GATEWAY_CHECKS, REACH } from './walk/walk-checks.ts';

export async function diagnoseSettings(
  usable: UsableSettings,
  instruments: Instruments,
  report: Report,
): Promise<readonly Finding[]> {
  const settings = openSettingsAtHand({ ...usable, ...instruments });
  const walk = createWalk({ baseUrl: usable.config.server.baseUrl, ...instruments });
  try {
    return [
      ...(await runChecks(SETTINGS_CHECKS, settings, report)),
      ...(await askRunningGateway(walk, settings, report)),
      // Last: what the running gateway was asked leaves a login under way in the store.
      ...(await runChecks(STORE_CHECKS, settings, report)),
    ];
  } finally {
    settings.close();
  }
}

async function askRunningGateway(
  walk: Walk,
  settings: SettingsAtHand,
  report: Report,
): Promise<readonly Finding[]> {
  const reached = await runChecks([REACH], walk, () => {});
  if (hasFailure(reached))
    return [
      reportAbsence(reached, walk.baseUrl, report),
      ...(await runChecks(ABSENT_GATEWAY_CHECKS, settings, report)),
    ];
  for (const finding of reached) report(REACH.section, finding);
  return [...reached, ...(await runChecks([...GATEWAY_CHECKS, ...CLIENT_CHECKS], walk, report))];
}

/** Before the first start that is as it should be. */
function reportAbsence(reached: readonly Finding[], baseUrl: string, report: Report): Finding {
  const finding = unknown(
    'gateway.running',
    `what clients see: no gateway answers at ${baseUrl}.`,
    {
      why: reached.map(({ what }) => what).join(' '),
      setting: 'BASE_URL',
      remedy:
        'start the gateway, and run this again. If it runs already, correct BASE_URL, or the proxy in front of it.',
    },
  );
  report(REACH.section, finding);
  return finding;
}
