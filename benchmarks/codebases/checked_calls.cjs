// The calls of TypeScript files as the compiler's checker resolves them: one JSON array a line,
// [file, line, column, name, null or [file, lines…] of the definition]. Lines begin at 1, columns at 0, in bytes.
//
//     node checked_calls.cjs FOLDER_OF_TYPESCRIPT ROOT FILE…
//
// A call of something that only a type describes (a parameter, a property, `any`) has no line: no definition is right.
"use strict";
const path = require("path");

const [compiler, root, ...files] = process.argv.slice(2);
const ts = require(path.resolve(compiler));
const program = ts.createProgram(files, {
  target: ts.ScriptTarget.ES2022,
  module: ts.ModuleKind.ESNext,
  moduleResolution: ts.ModuleResolutionKind.Bundler,
  jsx: ts.JsxEmit.Preserve,
  strict: true,
  noEmit: true,
  skipLibCheck: true,
  types: [],
});
const checker = program.getTypeChecker();
const within = new Set(files.map((file) => path.resolve(file)));

function line(file, position) {
  return file.getLineAndCharacterOfPosition(position).line + 1;
}

/** The declaration with a body among the overloads of one, else the last one. */
function implementation(declaration) {
  const symbol = declaration.symbol;
  const alike = (symbol?.declarations ?? [declaration]).filter((each) => each.kind === declaration.kind);
  return alike.find((each) => each.body) ?? alike[alike.length - 1] ?? declaration;
}

const DEFINITIONS = new Set([
  ts.SyntaxKind.FunctionDeclaration, ts.SyntaxKind.FunctionExpression, ts.SyntaxKind.ArrowFunction,
  ts.SyntaxKind.MethodDeclaration, ts.SyntaxKind.MethodSignature, ts.SyntaxKind.GetAccessor,
  ts.SyntaxKind.ClassDeclaration, ts.SyntaxKind.ClassExpression,
]);

/** What a call runs: a declaration, "outside" of the files, or undefined when no definition says. */
function target(call) {
  if (ts.isNewExpression(call)) {
    const found = checker.getTypeAtLocation(call.expression).symbol?.declarations?.find(ts.isClassLike);
    if (found) return found;
  }
  let declaration = checker.getResolvedSignature(call)?.declaration;
  if (declaration && ts.isConstructorDeclaration(declaration)) declaration = declaration.parent;
  if (!declaration) return undefined;
  if (!within.has(path.resolve(declaration.getSourceFile().fileName))) return "outside";
  declaration = DEFINITIONS.has(declaration.kind) ? implementation(declaration) : undefined;
  return declaration;
}

function visit(node, file) {
  if ((ts.isCallExpression(node) && node.expression.kind !== ts.SyntaxKind.ImportKeyword) || ts.isNewExpression(node)) {
    const found = target(node);
    if (found !== undefined) {
      const name = node.expression.name ?? node.expression;
      const label = ts.isIdentifier(name) ? name.text : name.kind === ts.SyntaxKind.SuperKeyword ? "super" : "";
      const begin = name.getStart(file);
      const at = file.getLineAndCharacterOfPosition(begin);
      const column = Buffer.byteLength(file.text.slice(begin - at.character, begin));
      let defined = null;
      if (found !== "outside") {
        const home = found.getSourceFile();
        const lines = [line(home, found.getStart(home)), line(home, (found.name ?? found).getStart(home))];
        defined = [path.relative(root, home.fileName), ...lines];
      }
      console.log(JSON.stringify([path.relative(root, file.fileName), at.line + 1, column, label, defined]));
    }
  }
  ts.forEachChild(node, (child) => visit(child, file));
}

for (const file of program.getSourceFiles()) {
  if (within.has(path.resolve(file.fileName))) visit(file, file);
}
