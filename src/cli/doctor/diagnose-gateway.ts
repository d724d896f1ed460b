// A gateway of which nothing is known but its URL.
import { runClientChecks } from './clients/run-client-checks.ts';
import type { Finding } from './finding.ts';
import type { Instruments } from './instruments.ts';
import { hasFailure } from './render.ts';
import { type Report, runChecks } from './run-checks.ts';
import { createWalk } from './walk/walk.ts';
import { BACKGROUND_CHECKS, CLIENT_CHECKS, GATEWAY_CHECKS, REACH } from './walk/walk-checks.ts';
import { walkGateway } from './walk/walk-gateway.ts';

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
  return [...findings, ...(await runClientChecks(findings, CLIENT_CHECKS, walk, report))];
}
