// deploy/grafana/postern.json, as Grafana imports it (schema version 39, Grafana 10.4 and later).
import { type Panel, ROWS } from './panels.ts';

const WIDTH = 8;
const HEIGHT = 8;
const COLUMNS = 24 / WIDTH;
const SOURCE = { type: 'prometheus', uid: '${datasource}' };

export function renderDashboard(): string {
  return `${JSON.stringify(
    {
      uid: 'postern',
      title: 'Postern',
      description: 'An MCP gateway: calls, tools, servers behind it, logins, store and processes.',
      tags: ['mcp'],
      schemaVersion: 39,
      version: 1,
      editable: true,
      graphTooltip: 1,
      refresh: '30s',
      time: { from: 'now-6h', to: 'now' },
      timezone: 'browser',
      templating: { list: VARIABLES },
      panels: renderPanels(),
    },
    null,
    2,
  )}\n`;
}

const VARIABLES = [
  { name: 'datasource', label: 'Prometheus', type: 'datasource', query: 'prometheus' },
  {
    name: 'job',
    label: 'Job',
    type: 'query',
    datasource: SOURCE,
    definition: 'label_values(mcp_sessions_active, job)',
    query: { query: 'label_values(mcp_sessions_active, job)', refId: 'job' },
    refresh: 2,
    sort: 1,
    current: { text: 'postern', value: 'postern' },
  },
];

function renderPanels(): readonly object[] {
  const rendered: object[] = [];
  let top = 0;
  let id = 1;
  for (const { title, panels } of ROWS) {
    const place = { h: 1, w: 24, x: 0, y: top };
    rendered.push({ id: id++, type: 'row', title, collapsed: false, gridPos: place, panels: [] });
    top += 1;
    for (const [at, panel] of panels.entries()) {
      const x = (at % COLUMNS) * WIDTH;
      const y = top + Math.floor(at / COLUMNS) * HEIGHT;
      rendered.push({ id: id++, ...renderPanel(panel), gridPos: { h: HEIGHT, w: WIDTH, x, y } });
    }
    top += Math.ceil(panels.length / COLUMNS) * HEIGHT;
  }
  return rendered;
}

function renderPanel({ title, about, unit, queries }: Panel) {
  return {
    type: 'timeseries',
    title,
    description: about,
    datasource: SOURCE,
    fieldConfig: {
      defaults: { unit, min: 0, custom: { fillOpacity: 10, showPoints: 'never', lineWidth: 1 } },
      overrides: [],
    },
    options: {
      legend: { displayMode: 'list', placement: 'bottom', showLegend: true },
      tooltip: { mode: 'multi', sort: 'desc' },
    },
    targets: queries.map(([legendFormat, expr], at) => ({
      refId: String.fromCharCode('A'.charCodeAt(0) + at),
      datasource: SOURCE,
      expr,
      legendFormat,
      range: true,
    })),
  };
}
