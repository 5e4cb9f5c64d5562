// The one place where Boost.JSON is compiled; everybody else includes <boost/json.hpp>.
#include <boost/json/src.hpp>
