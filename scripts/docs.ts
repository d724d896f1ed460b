// npm run docs: writes the parts of the documentation that are generated from tables and examples in the code, and from the last
// benchmark. With --check it writes nothing and fails if a file is out of date.
import { readFile, writeFile } from 'node:fs/promises';
import { createGatewayFileSchema } from '../src/gateway/configuration/gateway-file.ts';
import { renderBenchmarksChart } from './docs/benchmarks/chart.ts';
import { renderBenchmarksPage } from './docs/benchmarks/page.ts';
import { renderChartSchema } from './docs/chart-schema.ts';
import { renderCliPage } from './docs/cli-page.ts';
import { renderClientBlocks } from './docs/clients-page.ts';
import { renderDashboard } from './docs/dashboard/render-dashboard.ts';
import { renderDeployBlocks } from './docs/deploy-blocks.ts';
import { renderErrorsPage } from './docs/errors-page.ts';
import {
  renderAuthorsPage,
  renderContributingPage,
  renderSamplingPage,
  renderSkillsPage,
  renderTasksPage,
  renderTestingPage,
} from './docs/examples.ts';
import { renderScalingPage } from './docs/scaling/page.ts';
import { envExample, settingsPage } from './docs/settings-page.ts';

const root = new URL('../', import.meta.url);
const readIfPresent = (name: string) => readFile(new URL(name, root), 'utf8').catch(() => '');

const generated: Readonly<Record<string, (present: string) => string>> = {
  'docs/settings.md': settingsPage,
  'docs/errors.md': renderErrorsPage,
  'docs/cli.md': renderCliPage,
  'docs/clients.md': renderClientBlocks,
  'docs/connect.md': renderClientBlocks,
  'CONTRIBUTING.md': renderContributingPage,
  'docs/authors.md': renderAuthorsPage,
  'docs/sampling.md': renderSamplingPage,
  'docs/tasks.md': renderTasksPage,
  'docs/skills.md': renderSkillsPage,
  'docs/testing.md': renderTestingPage,
  'docs/operations/network.md': renderDeployBlocks,
  'docs/operations/metrics.md': renderDeployBlocks,
  'docs/benchmarks.md': renderBenchmarksPage,
  'docs/scaling.md': renderScalingPage,
  'docs/assets/benchmarks.svg': renderBenchmarksChart,
  'deploy/grafana/postern.json': renderDashboard,
  'deploy/helm/postern/values.schema.json': renderChartSchema,
  '.env.example': envExample,
  'postern.schema.json': () => `${JSON.stringify(createGatewayFileSchema(), null, 2)}\n`,
};

const isCheck = process.argv.includes('--check');
for (const [name, render] of Object.entries(generated)) {
  const present = await readIfPresent(name);
  const wanted = render(present);
  if (present === wanted) continue;
  if (isCheck) {
    console.error(`${name} is out of date: run npm run docs, and commit what it writes.`);
    process.exitCode = 1;
  } else {
    await writeFile(new URL(name, root), wanted);
    console.log(`${name} written`);
  }
}
