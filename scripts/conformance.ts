// npm run conformance: the official conformance tool against a gateway of its own, both revisions.
import { freePort } from '../test/support/gateway/ports.ts';
import { installConformance } from '../test/support/tools/conformance.ts';
import { startConformanceGateway } from '../test/support/tools/conformance-gateway.ts';
import { runSet, SETS, type SetVerdict } from '../test/support/tools/conformance-sets.ts';

// npm hands Ctrl+C on to whom it has reached already: more than once is nothing special.
const interruption = new AbortController();
process.on('SIGINT', () => interruption.abort());
process.on('SIGTERM', () => interruption.abort());

const tool = await installConformance();
const gateway = await startConformanceGateway({ PORT: String(await freePort()) });
try {
  for (const set of SETS) {
    const options = { url: gateway.mcpUrl, signal: interruption.signal };
    const verdict = await runSet(tool, set, options);
    printVerdict(verdict);
    if (!hasPassed(verdict)) process.exitCode = 1;
  }
} catch (error) {
  if (!interruption.signal.aborted) throw error;
  console.error('Interrupted.');
  process.exitCode = 1;
} finally {
  await gateway.close();
}

function hasPassed({ set, required: { passed, failed }, exitCode }: SetVerdict): boolean {
  return exitCode === 0 && failed.length === 0 && passed.length === set.scenarios;
}

function printVerdict({ set, required, notScored, complaints }: SetVerdict): void {
  const { requirements, scenarios } = set;
  console.log(
    `${requirements}: ${required.passed.length} of ${scenarios} required scenarios passed`,
  );
  for (const [scenario, checks] of Object.entries(complaints)) {
    console.log(`  ${required.failed.includes(scenario) ? '✗' : '!'} ${scenario}`);
    for (const check of checks) console.log(`      ${check}`);
  }
  if (notScored.failed.length > 0) {
    console.log(`  not scored, and not passed: ${notScored.failed.join(', ')}`);
  }
}
