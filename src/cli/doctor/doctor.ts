// `postern doctor [URL]`: says why a login fails, and which setting to change.
import { loadConfig } from '../../config/load.ts';
import { systemClock } from '../../platform/clock.ts';
import { openOutboundNetwork } from '../../platform/outbound/outbound-network.ts';
import type { OutboundConfig } from '../../platform/outbound/proxy-choice.ts';
import { addScheme } from '../command/add-scheme.ts';
import { prepareEnvironment } from '../command/env-file.ts';
import { UsageError } from '../command/errors.ts';
import type { Invocation } from '../command/invocation.ts';
import { readSecretOption } from '../command/secret-option.ts';
import { diagnoseGateway, diagnoseSettings } from './diagnose.ts';
import { type Finding, hasFailure } from './finding.ts';
import { createInstruments } from './instruments.ts';
import { createPrinter, type Printer } from './print.ts';
import { readSettings } from './read-settings.ts';

interface DoctorOptions {
  /** A user's access token; `-` for standard input. A secret. */
  readonly token: string | undefined;
  /** In place of `token`: a file that has it. */
  readonly tokenFile: string | undefined;
  readonly config: string | undefined;
  readonly json: boolean;
}

/**
 * `url` is that of a running gateway; without it the settings at hand are checked. Exit code 1 where
 * something does not work.
 *
 * @throws UsageError, StartError
 */
export async function doctor(
  url: string | undefined,
  given: DoctorOptions,
  invocation: Invocation,
): Promise<void> {
  const { process } = invocation;
  const { env } = process;
  const secretOption = { value: given.token, file: given.tokenFile };
  const secret = await readSecretOption('--token', secretOption, process);
  const options = { ...given, token: secret?.trim().replace(/^Bearer\s+/i, '') };
  const baseUrl = url === undefined ? undefined : parseGatewayUrl(url);
  // Those of a gateway elsewhere do not lie here: what does may be another's, and lead a token to his proxy.
  if (baseUrl === undefined) prepareEnvironment({ config: options.config }, env);
  const subject = baseUrl ?? 'the settings at hand';
  const printer = createPrinter(subject, { isJson: options.json, ...invocation });
  // Timers of the gateway keep no process alive, and for a moment there may be nothing else.
  const staying = setInterval(() => {}, 1000);
  const findings = await (baseUrl === undefined
    ? checkSettings(options, printer, env)
    : checkGateway(baseUrl, options, printer, loadOutbound(env))
  ).finally(() => clearInterval(staying));
  printer.finish(findings);
  if (hasFailure(findings)) process.exitCode = 1;
}

async function checkGateway(
  baseUrl: string,
  { token }: DoctorOptions,
  { report }: Printer,
  outbound: OutboundConfig,
): Promise<readonly Finding[]> {
  const network = await openOutboundNetwork(outbound);
  try {
    const instruments = createInstruments({ outbound, network, clock: systemClock, token });
    return await diagnoseGateway(baseUrl, instruments, report);
  } finally {
    await network.close();
  }
}

async function checkSettings(
  { token }: DoctorOptions,
  { report }: Printer,
  env: NodeJS.ProcessEnv,
): Promise<readonly Finding[]> {
  const { findings, usable } = await readSettings(env, report);
  if (usable === undefined) return findings;
  const { outbound } = usable.config;
  const network = await openOutboundNetwork(outbound);
  try {
    const instruments = createInstruments({ outbound, network, clock: systemClock, token });
    return [...findings, ...(await diagnoseSettings(usable, instruments, report))];
  } finally {
    await network.close();
  }
}

/** A gateway elsewhere has settings of its own; how one gets out of here is a matter of this machine. */
function loadOutbound(env: NodeJS.ProcessEnv): OutboundConfig {
  const proxies = Object.entries(env).filter(([name]) => /^(https?|no)_proxy$/i.test(name));
  return loadConfig({ ...Object.fromEntries(proxies), AUTH_REQUIRED: 'false' }).outbound;
}

const EXAMPLE = 'for example postern doctor https://mcp.example.com';

/** The address of a gateway as people write it: with /mcp or without, and perhaps without https://. @throws UsageError */
function parseGatewayUrl(text: string): string {
  const url = addScheme(text);
  if (!/^https?:\/\//i.test(url) || !URL.canParse(url)) {
    throw new UsageError(`${JSON.stringify(text)} is not the URL of a gateway, ${EXAMPLE}.`);
  }
  const { origin, pathname } = new URL(url);
  return origin + pathname.replace(/(\/mcp(\/[^/]*)?)?\/*$/, '');
}
