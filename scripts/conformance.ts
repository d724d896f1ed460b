// npm run conformance: the official conformance tool against a separate gateway, and through another one before it.
import { freePort } from '../test/support/gateway/ports.ts';
import { installConformance } from '../test/support/tools/conformance.ts';
import { PATHS, ROWS, startGatewayBefore } from '../test/support/tools/conformance-behind.ts';
import { startConformanceGateway } from '../test/support/tools/conformance-gateway.ts';
import {
  countScenarios,
  runSet,
  type ScenarioSet,
  SETS,
} from '../test/support/tools/conformance-sets.ts';

// npm hands Ctrl+C on to whom it has reached already: more than once is nothing special.
const interruption = new AbortController();
process.on('SIGINT', () => interruption.abort());
process.on('SIGTERM', () => interruption.abort());

const tool = await installConformance();
const gateway = await startConformanceGateway({ PORT: String(await freePort()) });
try {
  for (const set of SETS) await runAndPrint(set, gateway.mcpUrl, 'the gateway itself');
  for (const { set, era, absent } of ROWS) await runBehind(set, era, absent);
} catch (error) {
  if (!interruption.signal.aborted) throw error;
  console.error('Interrupted.');
  process.exitCode = 1;
} finally {
  await gateway.close();
}

async function runBehind(
  set: ScenarioSet,
  era: (typeof ROWS)[number]['era'],
  absent: readonly string[],
): Promise<void> {
  const before = await startGatewayBefore(gateway.mcpUrl, era);
  try {
    for (const path of PATHS) {
      const where = `through /mcp${path}, before a server of the ${era} era`;
      await runAndPrint(set, `${before.mcpUrl}${path}`, where, absent);
    }
  } finally {
    await before.close();
  }
}

async function runAndPrint(
  set: ScenarioSet,
  url: string,
  where: string,
  absent: readonly string[] = [],
): Promise<void> {
  const { signal } = interruption;
  const { passed, failed, complaints } = await runSet(tool, set, { url, signal });
  const all = countScenarios(set);
  console.log(`${set.requirements}, ${where}: ${passed.length} of ${all} scenarios passed`);
  for (const [scenario, checks] of Object.entries(complaints)) {
    if (absent.includes(scenario)) continue;
    console.log(`  ${failed.includes(scenario) ? '✗' : '!'} ${scenario}`);
    for (const check of checks) console.log(`      ${check}`);
  }
  for (const scenario of failed) {
    const isSaid = scenario in complaints || absent.includes(scenario);
    if (!isSaid) console.log(`  ✗ ${scenario}: nothing was found right`);
  }
  if (absent.length > 0) console.log(`  cannot pass (docs/protocol.md): ${absent.join(', ')}`);
  const isAsExpected = failed.every((scenario) => absent.includes(scenario));
  if (!isAsExpected || passed.length !== all - absent.length) process.exitCode = 1;
}
