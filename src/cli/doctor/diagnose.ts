// Which checks run, and which would say nothing more after what has failed.
import {
  BACKGROUND_CHECKS,
  ENTRY_CHECKS,
  GATEWAY_CHECKS,
  REACH,
  READING_CHECKS,
  SETTINGS_CHECKS,
  STORE_CHECK as STORE,
  TOKEN_CHECK,
} from './checks.ts';
import {
  checkClients,
  checkConfiguredClients,
  isInTheWay,
  runClientCheck,
} from './clients/check-clients.ts';
import {
  type Check,
  type Finding,
  failure,
  hasFailure,
  type Report,
  runChecks,
  unknown,
} from './finding.ts';
import type { Instruments } from './instruments.ts';
import { openSettingsAtHand, type UsableSettings } from './settings/settings-at-hand.ts';
import { BASE_URL_CHECK, STORE_CHECK } from './walk/check-entry.ts';
import { REACHABLE } from './walk/check-reach.ts';
import { EDITOR_SCHEME } from './walk/log-in.ts';
import { createWalk, type Walk } from './walk/walk.ts';

/** A gateway of which nothing is known but its URL. `found`: all that was reported so far. */
export async function diagnoseGateway(
  baseUrl: string,
  instruments: Instruments,
  report: Report,
  found: readonly Finding[],
): Promise<void> {
  const walk = createWalk({ baseUrl, ...instruments });
  if (hasFailure(await runChecks([REACH], walk, report))) return;
  await walkGateway(walk, [...GATEWAY_CHECKS, ...BACKGROUND_CHECKS], report);
  await runClientCheck(found, checkClients, walk, report);
}

/** A gateway whose settings are at hand. Where it runs already, it is asked, too. */
export async function diagnoseSettings(
  usable: UsableSettings,
  instruments: Instruments,
  report: Report,
  found: readonly Finding[],
): Promise<void> {
  const settings = openSettingsAtHand({ ...usable, ...instruments });
  const { server, oauth } = usable.config;
  const walk = createWalk({
    baseUrl: server.baseUrl,
    refusesEditors: !oauth.redirectUris.schemes.includes(EDITOR_SCHEME),
    ...instruments,
  });
  try {
    const own = await runChecks(SETTINGS_CHECKS, settings, report);
    const reached = await runChecks([REACH], walk, () => {});
    const runs = !hasFailure(reached);
    for (const finding of reached)
      report(REACH.section, runs ? finding : explainAbsence(finding, walk.baseUrl));
    if (runs) await askRunningGateway(walk, own, report);
    // After what the running gateway was asked, which leaves a login under way in the store.
    await runChecks([STORE], settings, report);
    if (runs) await runClientCheck(found, checkClients, walk, report);
    else await runClientCheck(found, checkConfiguredClients, settings, report);
  } finally {
    settings.close();
  }
}

/** `own`: what was found of the settings at hand. */
async function askRunningGateway(
  walk: Walk,
  own: readonly Finding[],
  report: Report,
): Promise<void> {
  if (!own.some(isInTheWay)) {
    const walked = await walkGateway(walk, GATEWAY_CHECKS, report);
    if (!lacksStore(walked)) await compareWithSettings(walk, BACKGROUND_CHECKS, own, report);
    return;
  }
  await walkGateway(walk, [...READING_CHECKS, WITHOUT_LOGIN], report);
  // Without a token this check would look at a login, too.
  if (walk.token !== undefined) await compareWithSettings(walk, [TOKEN_CHECK], own, report);
}

/** Logins count in rate limits: correcting one setting after the other must not use up what the browser needs. */
const WITHOUT_LOGIN: Check<Walk> = {
  section: 'Login',
  run: async () =>
    unknown('login', {
      what: 'whether clients can register and log in at the gateway that runs.',
      why: 'It was not tried: it counts in rate limits, and what fails above is in the way.',
      remedy: 'correct what fails above, restart the gateway, and run this again.',
    }),
};

/**
 * What stands behind the gateway was asked with the settings at hand. The gateway that runs may have been
 * started with others: then it fails where they do not.
 */
async function compareWithSettings(
  walk: Walk,
  checks: readonly Check<Walk>[],
  own: readonly Finding[],
  report: Report,
): Promise<void> {
  await runChecks(checks, walk, (section, finding) => {
    const known = own.find(({ check }) => nameFamily(check) === nameFamily(finding.check))?.status;
    if (finding.check !== 'tools' && (finding.status !== 'failure' || known === 'failure')) return;
    report(section, known === 'ok' ? explainOldSettings(finding) : finding);
  });
}

/** A token is refused for one reason or another. */
const nameFamily = (check: string): string => check.replace(/^token\..*/, 'token');

const explainOldSettings = ({ what }: Finding): Finding =>
  failure('gateway.settings', {
    what: `The gateway that runs has other settings. ${what}`,
    why: 'With the settings at hand this works.',
    remedy: 'restart the gateway. If that does not help, it reads its settings elsewhere.',
  });

/** Before the first start it is as it should be that nothing answers; something else that does is not. */
const explainAbsence = (finding: Finding, baseUrl: string): Finding =>
  finding.check === REACHABLE
    ? unknown('gateway.running', {
        what: `what clients see, as no gateway answers at ${baseUrl}.`,
        why: finding.what,
        remedy:
          'start it (postern start), and run this again. If it runs already, correct BASE_URL, or the proxy in front of it.',
      })
    : finding;

/** Of a gateway that was reached: all of `checks`, unless it sends clients to another address. */
async function walkGateway(
  walk: Walk,
  checks: readonly Check<Walk>[],
  report: Report,
): Promise<readonly Finding[]> {
  const entry = await runChecks(ENTRY_CHECKS, walk, report);
  const isElsewhere = hasFailure(entry.filter(({ check }) => check === BASE_URL_CHECK));
  if (isElsewhere) return entry;
  const possible = lacksStore(entry) ? leaveOutWithoutStore(checks) : checks;
  return [...entry, ...(await runChecks(possible, walk, report))];
}

const lacksStore = (findings: readonly Finding[]): boolean =>
  findings.some(({ check, status }) => check === STORE_CHECK && status === 'failure');

/** Once for each thing that stays unknown. */
function leaveOutWithoutStore(checks: readonly Check<Walk>[]): readonly Check<Walk>[] {
  const told = new Set<string>();
  return checks.flatMap((check) => {
    const { section, needsStore } = check;
    if (needsStore === undefined) return [check];
    if (told.has(needsStore)) return [];
    told.add(needsStore);
    const run = async () =>
      unknown('not-tried', `${needsStore}. Not tried: the store does not answer.`);
    return [{ section, run }];
  });
}
