// `postern doctor [URL]`: says why a login fails, and which setting to change.

import { prepareEnvironment } from '../command-line/env-file.ts';
import { UsageError } from '../command-line/errors.ts';
import type { Flags, Invocation, Texts } from '../command-line/invocation.ts';
import { stayAlive } from '../command-line/process-end.ts';
import { addScheme, readSecretOption } from '../command-line/read-input.ts';
import { loadOutbound } from '../setup/read-setup.ts';
import { authorizationCheck, proxyRedirectsCheck } from './authorization.ts';
import { clientCheck, clientSecretCheck } from './client-secret.ts';
import {
  type Check,
  createPrinter,
  type Finding,
  failure,
  hasFailure,
  type Printer,
  type Report,
  runChecks,
  unknown,
} from './finding.ts';
import { useInstruments } from './instruments.ts';
import { EDITOR_SCHEME } from './log-in.ts';
import {
  checkClients,
  checkConfiguredClients,
  isInTheWay,
  loginCheck,
  providerLoginCheck,
  registrationCheck,
  runClientCheck,
} from './login.ts';
import {
  capabilitiesCheck,
  clockCheck,
  discoveryCheck,
  keySetCheck,
  loginAbilitiesCheck,
  providerLogoutCheck,
  walkClockCheck,
} from './provider.ts';
import {
  BASE_URL_CHECK,
  challengeCheck,
  healthCheck,
  REACHABLE,
  reachCheck,
  STORE_CHECK,
} from './reach.ts';
import { guardsCheck, serversCheck } from './servers.ts';
import {
  approvalsCheck,
  documentsCheck,
  limitsCheck,
  loginPolicyCheck,
  machineClientsCheck,
  openSettingsAtHand,
  readSettings,
  type SettingsAtHand,
  startCheck,
  tokenKindCheck,
} from './settings-at-hand.ts';
import { storeCheck } from './store.ts';
import { tokenCheck, walkTokenCheck } from './token.ts';
import {
  corsCheck,
  createWalk,
  resourceMetadataCheck,
  serverMetadataCheck,
  type Walk,
} from './walk.ts';

/**
 * `url` is that of a running gateway; without it the settings at hand are checked. Exit code 1 where
 * something does not work.
 *
 * @throws UsageError, StartError
 */
export async function doctor(
  url: string | undefined,
  {
    token: given,
    tokenFile,
    config,
    json,
  }: Texts<'token' | 'tokenFile' | 'config'> & Flags<'json'>,
  invocation: Invocation,
): Promise<void> {
  const { process } = invocation;
  const { env } = process;
  const secret = await readSecretOption('--token', given, tokenFile, process);
  const token = secret?.trim().replace(/^Bearer\s+/i, '');
  const baseUrl = url === undefined ? undefined : parseGatewayUrl(url);
  // A gateway elsewhere has its settings elsewhere. A .env here may be somebody else's, and lead the token to their proxy.
  if (baseUrl === undefined) prepareEnvironment({ config }, env);
  const printer = createPrinter(baseUrl ?? 'the settings at hand', json, invocation);
  const { report, findings } = printer;
  await stayAlive(
    baseUrl === undefined
      ? diagnoseSettings(env, token, printer)
      : // A gateway elsewhere has settings of its own. How requests leave this machine is set here.
        useInstruments(loadOutbound(env), token, async (instruments) => {
          const walk = createWalk(baseUrl, instruments);
          if (hasFailure(await runChecks([reachCheck], walk, report))) return;
          await walkGateway(walk, [...GATEWAY_CHECKS, ...BACKGROUND_CHECKS], report);
          await runClientCheck(findings, checkClients, walk, report);
        }),
  );
  printer.finish();
  if (hasFailure(findings)) process.exitCode = 1;
}

/** The address of a gateway as people write it: with /mcp or without, and perhaps without https://. @throws UsageError */
function parseGatewayUrl(text: string) {
  const url = addScheme(text);
  if (!/^https?:\/\//i.test(url) || !URL.canParse(url)) {
    throw new UsageError(
      `${JSON.stringify(text)} is not the URL of a gateway, for example postern doctor https://mcp.example.com.`,
    );
  }
  const { origin, pathname } = new URL(url);
  return origin + pathname.replace(/(\/mcp(\/[^/]*)?)?\/*$/, '');
}

// Which checks run, and which would say nothing more after what has failed.

/** A gateway whose settings are at hand. Where it runs already, it is asked, too. */
async function diagnoseSettings(
  env: NodeJS.ProcessEnv,
  token: string | undefined,
  { report, findings }: Printer,
) {
  const usable = await readSettings(env, report);
  if (usable === undefined) return;
  const { server, oauth, outbound } = usable.config;
  await useInstruments(outbound, token, async (instruments) => {
    const settings = openSettingsAtHand(usable, instruments);
    const refusesEditors = !oauth.redirectUris.schemes.includes(EDITOR_SCHEME);
    const walk = createWalk(server.baseUrl, instruments, refusesEditors);
    try {
      const own = await runChecks(SETTINGS_CHECKS, settings, report);
      const reached = await runChecks([reachCheck], walk, () => {});
      const runs = !hasFailure(reached);
      for (const finding of reached)
        report(
          reachCheck.section,
          // Before the first start it is as it should be that nothing answers; something else that does is not.
          finding.check === REACHABLE && !runs
            ? unknown('gateway.running', {
                what: `what clients see, as no gateway answers at ${walk.baseUrl}.`,
                why: finding.what,
                remedy:
                  'start it (postern start), and run this again. If it runs already, correct BASE_URL, or the proxy in front of it.',
              })
            : finding,
        );
      if (runs) await askRunningGateway(walk, own, report);
      // After what the running gateway was asked, which leaves a login under way in the store.
      await runChecks([storeCheck], settings, report);
      if (runs) await runClientCheck(findings, checkClients, walk, report);
      else await runClientCheck(findings, checkConfiguredClients, settings, report);
    } finally {
      settings.close();
    }
  });
}

/** `own`: what was found of the settings at hand. */
async function askRunningGateway(walk: Walk, own: readonly Finding[], report: Report) {
  if (!own.some(isInTheWay)) {
    const walked = await walkGateway(walk, GATEWAY_CHECKS, report);
    if (!lacksStore(walked)) await compareWithSettings(walk, BACKGROUND_CHECKS, own, report);
    return;
  }
  await walkGateway(walk, [...READING_CHECKS, WITHOUT_LOGIN], report);
  // Without a token this check would look at a login, too.
  if (walk.token !== undefined) await compareWithSettings(walk, [walkTokenCheck], own, report);
}

/** Logins count in rate limits: correcting one setting after the other must not use up what the browser needs. */
const WITHOUT_LOGIN: Check<Walk> = {
  section: 'Login',
  run: async () =>
    unknown('login', {
      what: 'whether clients can register and log in at the gateway that runs.',
      why: 'Skipped: it counts towards rate limits, and the failures above would prevent it.',
      remedy: 'fix the failures above, restart the gateway, and run this again.',
    }),
};

/**
 * The provider and the servers were asked with the settings at hand. The gateway that runs may have been
 * started with others: then it fails where they do not.
 */
async function compareWithSettings(
  walk: Walk,
  checks: readonly Check<Walk>[],
  own: readonly Finding[],
  report: Report,
) {
  await runChecks(checks, walk, (section, finding) => {
    const known = own.find(({ check }) => nameFamily(check) === nameFamily(finding.check))?.status;
    if (finding.check !== 'tools' && (finding.status !== 'failure' || known === 'failure')) return;
    report(
      section,
      known === 'ok'
        ? failure('gateway.settings', {
            what: `The running gateway has other settings. ${finding.what}`,
            why: 'With the settings at hand this works.',
            remedy:
              'restart the gateway. If that does not help, it reads its settings from elsewhere.',
          })
        : finding,
    );
  });
}

/** A token is refused for one reason or another. */
const nameFamily = (check: string) => check.replace(/^token\..*/, 'token');

/** Walks through a gateway that was reached: all of `checks`, unless it sends clients to another address. */
async function walkGateway(
  walk: Walk,
  checks: readonly Check<Walk>[],
  report: Report,
): Promise<readonly Finding[]> {
  const entry = await runChecks(ENTRY_CHECKS, walk, report);
  const isElsewhere = hasFailure(entry.filter(({ check }) => check === BASE_URL_CHECK));
  if (isElsewhere) return entry;
  if (!lacksStore(entry)) return [...entry, ...(await runChecks(checks, walk, report))];
  // Once for each thing that stays unknown.
  const told = new Set<string>();
  const possible = checks.flatMap((check) => {
    const { section, needsStore } = check;
    if (needsStore === undefined) return [check];
    if (told.has(needsStore)) return [];
    told.add(needsStore);
    const run = async () =>
      unknown('not-tried', `${needsStore}. Not tried: the store does not answer.`);
    return [{ section, run }];
  });
  return [...entry, ...(await runChecks(possible, walk, report))];
}

const lacksStore = (findings: readonly Finding[]) =>
  findings.some(({ check, status }) => check === STORE_CHECK && status === 'failure');

// The table of checks, in their order. Of a running gateway it is that in which a client meets it.

/** Readiness, and the address by which the gateway calls itself. */
const ENTRY_CHECKS: readonly Check<Walk>[] = [healthCheck, challengeCheck];

/** Documents that clients read before they log in. It counts in no limit that a login meets. */
const READING_CHECKS: readonly Check<Walk>[] = [
  resourceMetadataCheck,
  serverMetadataCheck,
  corsCheck,
];

/** Checks of what clients need of the gateway itself. */
const GATEWAY_CHECKS: readonly Check<Walk>[] = [...READING_CHECKS, registrationCheck, loginCheck];

/** Checks of what stands behind the gateway. Where the settings are at hand, SETTINGS_CHECKS look at it more closely. */
const BACKGROUND_CHECKS: readonly Check<Walk>[] = [
  providerLoginCheck,
  clientSecretCheck,
  walkClockCheck,
  walkTokenCheck,
];

const SETTINGS_CHECKS: readonly Check<SettingsAtHand>[] = [
  startCheck,
  limitsCheck,
  tokenKindCheck,
  loginPolicyCheck,
  discoveryCheck,
  keySetCheck,
  clockCheck,
  capabilitiesCheck,
  loginAbilitiesCheck,
  providerLogoutCheck,
  clientCheck,
  authorizationCheck,
  proxyRedirectsCheck,
  documentsCheck,
  machineClientsCheck,
  approvalsCheck,
  tokenCheck,
  serversCheck,
  guardsCheck,
];
