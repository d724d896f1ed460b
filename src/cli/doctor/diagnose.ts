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

/** A gateway of which nothing is known but its URL. */
export async function diagnoseGateway(
  baseUrl: string,
  instruments: Instruments,
  report: Report,
): Promise<readonly Finding[]> {
  const walk = createWalk({ baseUrl, ...instruments });
  const reached = await runChecks([REACH], walk, report);
  if (hasFailure(reached)) return reached;
  const findings = [
    ...reached,
    ...(await walkGateway(walk, [...GATEWAY_CHECKS, ...BACKGROUND_CHECKS], report)),
  ];
  return [...findings, ...(await runClientCheck(findings, checkClients, walk, report))];
}

/** A gateway whose settings are at hand. Where it runs already, it is asked, too. */
export async function diagnoseSettings(
  usable: UsableSettings,
  instruments: Instruments,
  report: Report,
): Promise<readonly Finding[]> {
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
    const findings = [
      ...own,
      ...(runs
        ? await askRunningGateway(walk, { own, reached }, report)
        : reportAbsence(reached, walk.baseUrl, report)),
      // After what the running gateway was asked, which leaves a login under way in the store.
      ...(await runChecks([STORE], settings, report)),
    ];
    const clients = runs
      ? await runClientCheck(findings, checkClients, walk, report)
      : await runClientCheck(findings, checkConfiguredClients, settings, report);
    return [...findings, ...clients];
  } finally {
    settings.close();
  }
}

/** `own`: what was found of the settings at hand. */
async function askRunningGateway(
  walk: Walk,
  { own, reached }: Readonly<Record<'own' | 'reached', readonly Finding[]>>,
  report: Report,
): Promise<readonly Finding[]> {
  for (const finding of reached) report(REACH.section, finding);
  if (!own.some(isInTheWay)) {
    const walked = await walkGateway(walk, GATEWAY_CHECKS, report);
    if (lacksStore(walked)) return [...reached, ...walked];
    const compared = await compareWithSettings(walk, BACKGROUND_CHECKS, own, report);
    return [...reached, ...walked, ...compared];
  }
  const checks = [...READING_CHECKS, WITHOUT_LOGIN];
  const walked = await walkGateway(walk, checks, report);
  // Without a token this check would look at a login, too.
  const more = walk.token === undefined ? [] : [TOKEN_CHECK];
  return [...reached, ...walked, ...(await compareWithSettings(walk, more, own, report))];
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
): Promise<readonly Finding[]> {
  const all: Finding[] = [];
  await runChecks(checks, walk, (section, finding) => {
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
  failure('gateway.settings', {
    what: `The gateway that runs has other settings. ${what}`,
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
      ? unknown('gateway.running', {
          what: `what clients see, as no gateway answers at ${baseUrl}.`,
          why: finding.what,
          remedy:
            'start it (postern start), and run this again. If it runs already, correct BASE_URL, or the proxy in front of it.',
        })
      : finding,
  );
  for (const finding of findings) report(REACH.section, finding);
  return findings;
}

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
