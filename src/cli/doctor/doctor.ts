// `postern doctor [URL]`: says why a login fails, and which setting to change.
import { addScheme } from '../command/add-scheme.ts';
import { prepareEnvironment } from '../command/env-file.ts';
import { UsageError } from '../command/errors.ts';
import type { Flags, Invocation, Texts } from '../command/invocation.ts';
import { stayAlive } from '../command/process-end.ts';
import { readSecretOption } from '../command/secret-option.ts';
import { loadOutbound } from '../setup/load-outbound.ts';
import { diagnoseGateway, diagnoseSettings } from './diagnose.ts';
import { type Finding, hasFailure, type Report } from './finding.ts';
import { useInstruments } from './instruments.ts';
import { createPrinter } from './print.ts';
import { readSettings } from './settings/settings-at-hand.ts';

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
  const secret = await readSecretOption('--token', { value: given, file: tokenFile }, process);
  const token = secret?.trim().replace(/^Bearer\s+/i, '');
  const baseUrl = url === undefined ? undefined : parseGatewayUrl(url);
  // A gateway elsewhere has its settings elsewhere. A .env here may be somebody else's, and lead the token to their proxy.
  if (baseUrl === undefined) prepareEnvironment({ config }, env);
  const subject = baseUrl ?? 'the settings at hand';
  const printer = createPrinter(subject, json, invocation);
  const findings: Finding[] = [];
  const report: Report = (section, finding) => {
    findings.push(finding);
    printer.report(section, finding);
  };
  await stayAlive(
    baseUrl === undefined
      ? diagnoseHere(env, token, report, findings)
      : // A gateway elsewhere has settings of its own. How requests leave this machine is set here.
        useInstruments(loadOutbound(env), token, (instruments) =>
          diagnoseGateway(baseUrl, instruments, report, findings),
        ),
  );
  printer.finish(findings);
  if (hasFailure(findings)) process.exitCode = 1;
}

async function diagnoseHere(
  env: NodeJS.ProcessEnv,
  token: string | undefined,
  report: Report,
  found: readonly Finding[],
): Promise<void> {
  const usable = await readSettings(env, report);
  if (usable === undefined) return;
  await useInstruments(usable.config.outbound, token, (instruments) =>
    diagnoseSettings(usable, instruments, report, found),
  );
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
