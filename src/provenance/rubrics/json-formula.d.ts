/** The part of `@adobe/json-formula` that rubrics are evaluated with; the package has no types. */
declare module '@adobe/json-formula' {
  /** Evaluates a node of a parsed expression. */
  export interface Interpreter {
    globals: Record<string, unknown>;
    search(ast: object, data: unknown): unknown;
  }

  export interface CustomFunction {
    readonly _func: (args: readonly unknown[], data: unknown, interpreter: Interpreter) => unknown;
    readonly _signature: readonly { readonly types: readonly number[] }[];
  }

  export default class JsonFormula {
    constructor(customFunctions?: Readonly<Record<string, CustomFunction>>);
    compile(expression: string, allowedGlobalNames?: readonly string[]): object;
    run(ast: object, json: unknown, language: string, globals: Readonly<Record<string, unknown>>): unknown;
  }
}
