// JSON Schemas of questions, which tools make while they run.
import { Ajv, type ValidateFunction } from 'ajv';
import { describeErrors } from '../catalog/define/describe-errors.ts';

/**
 * What is wrong with a value by a schema that was not defined beforehand. What is compiled goes with
 * the schema: one that was made for a single question leaves nothing behind.
 */
export function findSchemaProblem(
  schema: object,
  subject: string,
  value: unknown,
): string | undefined {
  const validate = validators.get(schema) ?? compileQuestionSchema(schema);
  return validate(value) ? undefined : describeErrors(subject, validate.errors ?? []).join('\n');
}

const validators = new WeakMap<object, ValidateFunction>();

/** An Ajv keeps something of all that it has compiled: after so many schemas comes the next one. */
const SCHEMAS_PER_AJV = 100;

const compileQuestionSchema = (() => {
  let schemasLeft = 0;
  let ajv: Ajv | undefined;
  return (schema: object): ValidateFunction => {
    if (ajv === undefined || schemasLeft === 0) {
      ajv = new Ajv({ strict: false, validateFormats: false, logger: false, verbose: true });
      schemasLeft = SCHEMAS_PER_AJV;
    }
    schemasLeft -= 1;
    const validate = ajv.compile(schema);
    // Or the next one with its `$id` would be refused.
    ajv.removeSchema(schema);
    validators.set(schema, validate);
    return validate;
  };
})();
