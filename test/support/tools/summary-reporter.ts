import type { Reporter, TestModule } from 'vitest/node';

/**
 * Ends the run with the line `N passed, N failed`. A file that cannot be loaded, an error outside
 * of any test, and a run that never got to its tests count as failed.
 */
// biome-ignore lint/style/noDefaultExport: vitest loads a reporter by its default export
export default class SummaryReporter implements Reporter {
  #line = '0 passed, 1 failed';

  onInit(): void {
    // After the other reporters' summaries, whatever their order.
    process.once('exit', () => console.log(this.#line));
  }

  onTestRunEnd(modules: readonly TestModule[], errors: readonly unknown[]): void {
    const tests = modules.flatMap((module) => [...module.children.allTests()]);
    const count = (state: string) => tests.filter((test) => test.result().state === state).length;
    const broken = modules.filter(
      (module) =>
        module.state() === 'failed' && [...module.children.allTests('failed')].length === 0,
    );
    const failed = count('failed') + broken.length + errors.length;
    this.#line = `${count('passed')} passed, ${failed} failed`;
  }
}
