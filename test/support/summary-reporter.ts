import type { Reporter, TestModule } from 'vitest/node';

/** Ends the run with the line `N passed, N failed`; a file that cannot be loaded counts as failed. */
// biome-ignore lint/style/noDefaultExport: vitest loads a reporter by its default export
export default class SummaryReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], errors: readonly unknown[]): void {
    const tests = modules.flatMap((module) => [...module.children.allTests()]);
    const count = (state: string) => tests.filter((test) => test.result().state === state).length;
    const broken = modules.filter(
      (module) =>
        module.state() === 'failed' && [...module.children.allTests('failed')].length === 0,
    );
    const failed = count('failed') + broken.length + errors.length;
    // After the other reporters' summaries, whatever their order.
    process.once('exit', () => console.log(`${count('passed')} passed, ${failed} failed`));
  }
}
