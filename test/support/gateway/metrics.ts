import type { TestGateway } from './gateway.ts';

type Labels = Readonly<Record<string, string>>;

/**
 * The sum of a family's series that carry these labels; 0 where there is none, undefined where
 * the family itself shows no sample.
 */
export async function seriesOf(
  gateway: TestGateway,
  family: string,
  labels: Labels = {},
): Promise<number | undefined> {
  const { text } = await gateway.request({ path: '/metrics' });
  const samples = text
    .split('\n')
    .filter((line) => line.startsWith(`${family} `) || line.startsWith(`${family}{`));
  if (samples.length === 0 && Object.keys(labels).length === 0) return undefined;
  const wanted = Object.entries(labels).map(([name, value]) => `${name}="${value}"`);
  return samples
    .filter((line) => wanted.every((label) => line.includes(label)))
    .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' ') + 1)), 0);
}
