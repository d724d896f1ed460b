// A gateway whose settings are at hand. Where it runs already, it is asked, too.
import { runClientChecks } from './clients/run-client-checks.ts';
import { type Finding, failure, unknown } from './finding.ts';
import type { Instruments } from './instruments.ts';
import type { UsableSettings } from './read-settings.ts';
import { hasFailure } from './render.ts';
import { type Report, runChecks } from './run-checks.ts';
import { openSettingsAtHand } from './settings/settings-at-hand.ts';
import {
  ABSENT_GATEWAY_CHECKS,
  SETTINGS_CHECKS,
  STORE_CHECKS,
} from './settings/settings-checks.ts';
import { REACHABLE } from './walk/check-reach.ts';
import { createWalk, type Walk } from './walk/walk.ts';
import { BACKGROUND_CHECKS, CLIENT_CHECKS, GATEWAY_CHECKS, REACH } from './walk/walk-checks.ts';
import { walkGateway } from './walk/walk-gateway.ts';

export async function diagnoseSettings(
  usable: UsableSettings,
  instruments: Instruments,
  report: Report,
): Promise<readonly Finding[]> {
  const settings = openSettingsAtHand({ ...usable, ...instruments });
  const walk = createWalk({ baseUrl: usable.config.server.baseUrl, ...instruments });
  try {
    const own = await runChecks(SETTINGS_CHECKS, settings, report);
    const reached = await runChecks([REACH], walk, () => {});
    const runs = !hasFailure(reached);
    const findings = [
      ...own,
      ...(runs
        ? await askRunningGateway(walk, { own, reached }, report)
        : reportAbsence(reached, walk.baseUrl, report)),
      // After what the running gateway was asked, which leaves a login under way in the store.
      ...(await runChecks(STORE_CHECKS, settings, report)),
    ];
    const clients = runs
      ? await runClientChecks(findings, CLIENT_CHECKS, walk, report)
      : await runClientChecks(findings, ABSENT_GATEWAY_CHECKS, settings, report);
    return [...findings, ...clients];
  } finally {
    settings.close();
  }
}

interface Before {
  /** Of the settings at hand. */
  readonly own: readonly Finding[];
  readonly reached: readonly Finding[];
}

async function askRunningGateway(
  walk: Walk,
  { own, reached }: Before,
  report: Report,
): Promise<readonly Finding[]> {
  for (const finding of reached) report(REACH.section, finding);
  const walked = await walkGateway(walk, GATEWAY_CHECKS, report);
  return [...reached, ...walked, ...(await compareWithSettings(walk, own, report))];
}

/**
 * What stands behind the gateway was asked with the settings at hand. The gateway that runs may have been
 * started with others: then it fails where they do not.
 */
async function compareWithSettings(
  walk: Walk,
  own: readonly Finding[],
  report: Report,
): Promise<readonly Finding[]> {
  const all: Finding[] = [];
  await runChecks(BACKGROUND_CHECKS, walk, (section, finding) => {
    const known = own.find(({ check }) => nameFamily(check) === nameFamily(finding.check))?.status;
    if (finding.check !== 'tools' && (finding.status !== 'failure' || known === 'failure')) return;
    const told = known === 'ok' ? explainOldSettings(finding) : finding;
    report(section, told);
    all.push(told);
  });
  return all;
}

/** A token is refused for one reason or another. */
const nameFamily = (check: string): string => check.replace(/^token\..*/, 'token');

const explainOldSettings = ({ what }: Finding): Finding =>
  failure('gateway.settings', `The gateway that runs has other settings. ${what}`, {
    why: 'With the settings at hand this works.',
    remedy: 'restart the gateway. If that does not help, it reads its settings elsewhere.',
  });

/** Before the first start it is as it should be that nothing answers; something else that does is not. */
function reportAbsence(
  reached: readonly Finding[],
  baseUrl: string,
  report: Report,
): readonly Finding[] {
  const findings = reached.map((finding) =>
    finding.check === REACHABLE
      ? unknown('gateway.running', `what clients see, as no gateway answers at ${baseUrl}.`, {
          why: finding.what,
          remedy:
            'start it (postern start), and run this again. If it runs already, correct BASE_URL, or the proxy in front of it.',
        })
      : finding,
  );
  for (const finding of findings) report(REACH.section, finding);
  return findings;
}
