import { stripVTControlCharacters } from 'node:util';
import type { Reporter, SerializedError, TestModule } from 'vitest/node';

/**
 * Ends the run with what failed, a line for each, and the line `N passed, N failed`. A file that cannot be loaded, an error
 * outside of any test, and a run that never got to its tests count as failed.
 */
// biome-ignore lint/style/noDefaultExport: vitest loads a reporter by its default export
export default class SummaryReporter implements Reporter {
  #lines: readonly string[] = ['0 passed, 1 failed'];

  onInit(): void {
    // After the other reporters' summaries, whatever their order.
    process.once('exit', () => console.log(this.#lines.join('\n')));
  }

  onTestRunEnd(modules: readonly TestModule[], errors: readonly SerializedError[]): void {
    const tests = modules.flatMap((module) => [...module.children.allTests()]);
    const passed = tests.filter((test) => test.result().state === 'passed');
    const failed = tests.filter((test) => test.result().state === 'failed');
    const broken = modules.filter(
      (module) =>
        module.state() === 'failed' && [...module.children.allTests('failed')].length === 0,
    );
    const failures = [
      ...failed.map((test) =>
        describeFailure(
          `${test.module.relativeModuleId} > ${test.fullName}`,
          test.result().errors ?? [],
        ),
      ),
      ...broken.map((module) => describeFailure(module.relativeModuleId, module.errors())),
      ...errors.map((error) => describeFailure('outside of any test', [error])),
    ];
    this.#lines = [...failures, `${passed.length} passed, ${failures.length} failed`];
  }
}

const MAX_MESSAGE = 300;

function describeFailure(
  where: string,
  errors: readonly Pick<SerializedError, 'message'>[],
): string {
  const [message = 'no error'] = errors.map((error) => stripVTControlCharacters(error.message));
  return `failed: ${where}: ${message.replaceAll(/\s+/g, ' ').slice(0, MAX_MESSAGE)}`;
}
