// deploy/helm/postern/values.schema.json: what it knows of the gateway's settings.
import { SETTINGS } from '../../src/config/config.ts';

/** For the rest of the chart, the file itself says what is allowed. */
export function renderChartSchema(present: string): string {
  const schema: ChartSchema = JSON.parse(present);
  const variables = SETTINGS.map(({ variable }) => variable).sort();
  schema.properties.settings = {
    type: 'object',
    description: 'Settings, as environment variables; no secrets',
    // Any other variable may be one that the configuration file names, but for a setting that is written wrong.
    propertyNames: {
      anyOf: [
        { enum: variables },
        {
          pattern: '^[A-Z][A-Z0-9_]*$',
          not: { pattern: `^(${listPrefixes(variables).join('|')})_` },
        },
      ],
    },
    additionalProperties: { type: ['string', 'number', 'boolean'] },
    properties: Object.fromEntries(
      [...SETTINGS]
        .sort((a, b) => (a.variable < b.variable ? -1 : 1))
        .map(({ variable, summary, rule }) => [
          variable,
          {
            type: ['string', 'number', 'boolean'],
            description: `${summary} Allowed: ${rule.allowed}.`,
          },
        ]),
    ),
  };
  return `${JSON.stringify(schema, null, 2)}\n`;
}

interface ChartSchema {
  readonly properties: Record<string, object>;
}

/** Prefixes that only the gateway's settings have, and several of them share. */
function listPrefixes(variables: readonly string[]): readonly string[] {
  const prefixes = variables.map((variable) => variable.replace(/_.*/, ''));
  const common = prefixes.filter((prefix, at) => prefixes.indexOf(prefix) !== at);
  return [...new Set(common)].filter((prefix) => !FOREIGN.includes(prefix)).sort();
}

/** Node.js and OpenTelemetry have further variables. */
const FOREIGN = ['NODE', 'OTEL'];
