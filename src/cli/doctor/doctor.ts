// `postern doctor [URL]`: finds out why a login fails, and which setting to change.

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
  metricsCheck,
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
 * `url` is the address of a running gateway; without it, the local settings are checked. Exits with code 1 if there is a
 * failure.
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
  // A remote gateway has its own settings. A .env in this folder may be someone else's, and send the token to their proxy.
  if (baseUrl === undefined) prepareEnvironment({ config }, env);
  const printer = createPrinter(baseUrl ?? 'the local settings', json, invocation);
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

/** Parses a gateway's address as users write it: with or without /mcp and https://. @throws UsageError */
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

// Selects the checks to run; a failure makes later checks pointless.

/** Checks a gateway with the local settings, and the running gateway, if any. */
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
          // Before the first start, no response is expected; a response from another server is a failure.
          finding.check === REACHABLE && !runs
            ? unknown(
                'gateway.running',
                `what clients see, as no gateway answers at ${walk.baseUrl}.`,
                {
                  why: finding.what,
                  remedy:
                    'start it (postern start), and run this again. If it runs already, correct BASE_URL, or the proxy in front of it.',
                },
              )
            : finding,
        );
      if (runs) await askRunningGateway(walk, own, report);
      // After the checks of the running gateway, which leave an unfinished login in the store.
      await runChecks([storeCheck], settings, report);
      if (runs) await runClientCheck(findings, checkClients, walk, report);
      else await runClientCheck(findings, checkConfiguredClients, settings, report);
    } finally {
      settings.close();
    }
  });
}

/** `own`: findings about the local settings. */
async function askRunningGateway(walk: Walk, own: readonly Finding[], report: Report) {
  if (!own.some(isInTheWay)) {
    const walked = await walkGateway(walk, GATEWAY_CHECKS, report);
    if (!hasFailed(walked, STORE_CHECK))
      await compareWithSettings(walk, BACKGROUND_CHECKS, own, report);
    return;
  }
  await walkGateway(walk, [...READING_CHECKS, WITHOUT_LOGIN], report);
  // Without a token, this check would need a login.
  if (walk.token !== undefined) await compareWithSettings(walk, [walkTokenCheck], own, report);
}

/** Logins count towards rate limits: repeated runs while correcting settings must not use up the limit of the user's browser. */
const WITHOUT_LOGIN: Check<Walk> = {
  section: 'Login',
  run: async () =>
    unknown('login', 'whether clients can register and log in at the gateway that runs.', {
      why: 'Skipped: it counts towards rate limits, and the failures above would prevent it.',
      remedy: 'fix the failures above, restart the gateway, and run this again.',
    }),
};

/**
 * Compares with the findings for the local settings. A running gateway that was started with different settings may fail where
 * these succeed.
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
        ? failure(
            'gateway.settings',
            `The running gateway has different settings. ${finding.what}`,
            {
              why: 'With the local settings this works.',
              remedy:
                'restart the gateway. If that does not help, it reads its settings from elsewhere.',
            },
          )
        : finding,
    );
  });
}

/** A token may be rejected for different reasons. */
const nameFamily = (check: string) => check.replace(/^token\..*/, 'token');

/** Checks a gateway that responds: all of `checks`, unless it sends clients to a different address. */
async function walkGateway(walk: Walk, checks: readonly Check<Walk>[], report: Report) {
  const entry = await runChecks(ENTRY_CHECKS, walk, report);
  if (hasFailed(entry, BASE_URL_CHECK)) return entry;
  const possible = hasFailed(entry, STORE_CHECK) ? leaveOutStore(checks) : checks;
  return [...entry, ...(await runChecks(possible, walk, report))];
}

/** Replaces checks that require the store by one finding per unknown result. */
const leaveOutStore = (checks: readonly Check<Walk>[]) =>
  checks.flatMap((check, index) => {
    const { section, needsStore } = check;
    if (needsStore === undefined) return check;
    if (checks.findIndex((one) => one.needsStore === needsStore) < index) return [];
    const what = `${needsStore}. Not tried: the store does not answer.`;
    return { section, run: async () => unknown('not-tried', what) };
  });

const hasFailed = (findings: readonly Finding[], name: string) =>
  findings.some(({ check, status }) => check === name && status === 'failure');

// The checks in order; for a running gateway, in the order a client makes these requests.

/** Readiness, and the gateway's own idea of its address. */
const ENTRY_CHECKS: readonly Check<Walk>[] = [healthCheck, metricsCheck, challengeCheck];

/** Documents that clients read before they log in. Reading them counts towards no limit on logins. */
const READING_CHECKS: readonly Check<Walk>[] = [
  resourceMetadataCheck,
  serverMetadataCheck,
  corsCheck,
];

/** What clients need from the gateway itself. */
const GATEWAY_CHECKS: readonly Check<Walk>[] = [...READING_CHECKS, registrationCheck, loginCheck];

/** What is behind the gateway. With local settings, SETTINGS_CHECKS examine it more closely. */
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
