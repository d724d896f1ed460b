// docs/assets/benchmarks.svg: CPU per request of every contestant, as bars. Text and bars take their colours
// from the reader's light or dark setting.
import { CONTESTANTS } from '../../../bench/contestants.ts';
import { readPublished } from '../../../bench/published.ts';
import { computeFigures } from '../../../bench/results.ts';

const CONNECTIONS = 32;
const WIDTH = 800;
const LABEL_WIDTH = 370;
const VALUE_WIDTH = 70;
const BAR_HEIGHT = 18;
const ROW_HEIGHT = 26;
const TOP = 34;

export function renderBenchmarksChart(): string {
  const rows = (readPublished().calls?.series ?? [])
    .filter(({ connections, flaw }) => connections === CONNECTIONS && flaw === undefined)
    .map(computeFigures);
  const most = Math.max(1, ...rows.map(({ cpuMicroseconds }) => cpuMicroseconds));
  const bars = rows.map(({ contestant, cpuMicroseconds }, at) => {
    const label = CONTESTANTS.find(({ name }) => name === contestant)?.label ?? contestant;
    const isOurs = label.startsWith('Postern');
    const y = TOP + at * ROW_HEIGHT;
    const width = Math.round(((WIDTH - LABEL_WIDTH - VALUE_WIDTH) * cpuMicroseconds) / most);
    const middle = y + BAR_HEIGHT / 2 + 4;
    return `  <text x="${LABEL_WIDTH - 10}" y="${middle}" text-anchor="end">${label.replaceAll('`', '')}</text>
  <rect class="${isOurs ? 'ours' : 'other'}" x="${LABEL_WIDTH}" y="${y}" width="${width}" height="${BAR_HEIGHT}" rx="2"/>
  <text x="${LABEL_WIDTH + width + 8}" y="${middle}">${Math.round(cpuMicroseconds)} µs</text>
`;
  });
  const height = TOP + rows.length * ROW_HEIGHT;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img">
  <title>CPU per request with ${CONNECTIONS} connections, in microseconds; less is better</title>
  <style>
    text { font: 13px system-ui, sans-serif; fill: #1a2328; }
    .ours { fill: #0b5c57; }
    .other { fill: #8fa3a8; }
    @media (prefers-color-scheme: dark) {
      text { fill: #e2e9ea; }
      .ours { fill: #74cfc4; }
      .other { fill: #5b6d72; }
    }
  </style>
  <text x="${LABEL_WIDTH}" y="18">CPU per request, ${CONNECTIONS} connections (less is better)</text>
${bars.join('')}</svg>
`;
}
